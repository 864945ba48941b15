//! The papers the studies are of: what each is, and which of its figures and tables have no study.
//!
//! Called by the command line, which lists every figure and table with its verdicts.
//!
//! Invariant: every study belongs to exactly one of them, by the first part of its identifier.

use segstream_lab::study::Study;

/// One paper, or what stands in its place: the studies of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its folder: `ec`; also the first part of its studies' identifiers.
    pub folder: &'static str,
    /// What it is cited by: `EC`.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub subject: &'static str,
    /// Who wrote it, its title, where and when.
    pub work: &'static str,
    /// Which of its figures and tables have no study, and why; empty where none is left out.
    pub left_out: &'static str,
}

/// All of them, in the order of the report.
pub const PAPERS: &[Paper] = &[
    Paper {
        folder: "ec",
        name: "EC",
        subject: "error control",
        work: "F. Gong and G. M. Parulkar, An Application-Oriented Error Control Scheme for High-Speed Networks, Washington University, \
               WUCS-92-37, 1992",
        left_out: "Figures 1 to 9 and 14 are diagrams without results.",
    },
    Paper {
        folder: "fc",
        name: "FC",
        subject: "flow control",
        work: "F. Gong and G. M. Parulkar, A Two-Level Flow Control Scheme for High Speed Networks, Washington University, WUCS-92-38, \
               1992",
        left_out: "Figures 1 to 13, 15, 16 and 20 are diagrams without results.",
    },
    Paper {
        folder: "ht",
        name: "HT",
        subject: "HTPNET",
        work: "T. S. Chan and I. Gorton, HTPNET: A New Transport Protocol for High-speed Networks, University of New South Wales, SCS&E \
               Report 9402, 1994",
        left_out: "Figures 1 to 4, 6, 7 and 9 are diagrams without results; so is Figure 5, whose mechanism is run.",
    },
    Paper {
        folder: "aa",
        name: "AA",
        subject: "adaptive acknowledgment",
        work: "J.-K. Lee, Y. J. Kim, J. W. Chung and T. G. Kim, Adaptive Acknowledgment Scheme for Efficient Error Control in ATM \
               Clustering System, KAIST, about 1998",
        left_out: "Figures 1 to 4 are diagrams; the traces of Figures 2 and 3 are tests of the scheme, packet by packet. The copy of the \
                   text lacks a page, between the introduction and the middle of section 2; the formats of the packets and when the timer is \
                   set anew are inferred.",
    },
    Paper {
        folder: "xt",
        name: "XT",
        subject: "the error control of XTP",
        work: "A. A. Nilsson and M. Lee, A Performance Study of the XTP Error Control, North Carolina State University, TR-93/6, 1993",
        left_out: "Figures 1 to 3 are diagrams; Tables 1 to 3 list the strategies and have no results.",
    },
    Paper {
        folder: "flagship",
        name: "Segstream",
        subject: "studies of our own",
        work: "Segstream on links that change and that others share, its report periods and its repair units, against targets that we set",
        left_out: "",
    },
];

impl Paper {
    /// Whether the study with this identifier is of this paper.
    pub fn has(&self, id: &str) -> bool {
        id.split_once('/').is_some_and(|(folder, _)| folder == self.folder)
    }

    /// Its studies, in its order.
    pub fn studies(&self) -> impl Iterator<Item = &'static Study> {
        let paper = *self;
        crate::all().into_iter().filter(move |study| paper.has(study.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_is_of_one_paper_and_every_paper_has_studies_in_the_order_of_the_report() {
        let by_paper: Vec<&str> = PAPERS.iter().flat_map(Paper::studies).map(|study| study.id).collect();
        let all: Vec<&str> = crate::all().iter().map(|study| study.id).collect();
        assert_eq!(by_paper, all);
        for paper in PAPERS {
            assert!(paper.studies().next().is_some(), "{} has no studies", paper.name);
        }
    }
}
