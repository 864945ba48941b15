//! The table of the papers: each figure and table with its claims and their verdicts, as `docs/PAPERS.md`.
//!
//! Called by `study run --all`, which writes it as `papers.md`; `cargo xtask bless pictures` copies that to
//! `docs/PAPERS.md`, from where its links lead.
//!
//! Invariant: a study and a claim stand in it exactly once, whatever the run found of them; no text of a study is read as markup.

use segstream_lab::claim::Judgement;
use segstream_lab::plan::Preset;
use segstream_lab::report::{ClaimLine, Report, Section};
use segstream_lab::standing::{Place, Quality, Standing};
use segstream_studies::papers::{PAPERS, Paper};
use std::fmt::Write as _;

/// What is said of a claim whose verdict is none of the four.
const NOT_JUDGED: &str = "not judged";

/// What stands above the tables.
const INTRODUCTION: &str = "\
# The papers' figures and tables, with verdicts

Every figure and table of the five papers that has results, and the studies of our own. The first column leads to the study's
folder: what the paper states beside what was chosen, the pictures, and why a verdict is what it is.

A claim *agrees with the text* (the numbers of its sentence come out), agrees in *shape only* (the order or the direction does),
does *not agree*, or holds *by construction* (a parameter was inferred from it). The curves of the papers are lost: nothing is
called reproduced beyond what a sentence says. For the studies of our own the claims are targets: met at every setting, at some,
at none. A study that judges no claim stands here with *none*; its folder says what is seen.

This file is made by a run. `cargo xtask bless pictures` makes it anew, with every picture and the file NUMBERS.md of each study, in
one run of one preset.
";

/// What stands above the table of the flagship.
const STANDINGS: &str = "
## Where Segstream stands

At how many points of the papers' figures Segstream is ahead of the paper's scheme, level with it or behind it, on the same losses:
level is within 0.5 % of throughput, and within 5 % of a delay or of the packets of feedback. SSTP stands there with control on the
path, as Segstream does; feedback is counted where a paper counts it.

| figure | of what | beside | points | ahead | level | behind |
|---|---|---|---:|---:|---:|---:|
";

/// The whole file, of a report on all studies.
pub(super) fn papers(report: &Report, preset: Preset, seed: u64) -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str(&made_by(report, preset, seed));
    text.push_str(&counts(report));
    text.push_str(&standings(report));
    for paper in PAPERS {
        text.push_str(&of_paper(paper, report));
    }
    text
}

/// How it was made.
fn made_by(report: &Report, preset: Preset, seed: u64) -> String {
    let length = length(preset);
    let mut text = String::from("\n## How it was made\n\n");
    if preset != Preset::Paper {
        let _ = writeln!(
            text,
            "The preset is *{}*: **runs are shorter than the papers'**, and verdicts on maxima may differ.\n",
            preset.name()
        );
    }
    let _ = writeln!(text, "| | |\n|---|---|\n| command | `segstream study run --all{length} --seed {seed}` |");
    for (name, value) in &report.provenance {
        let _ = writeln!(text, "| {} | {} |", escaped(name), escaped(value));
    }
    text
}

/// What the preset is on the command line.
pub(super) const fn length(preset: Preset) -> &'static str {
    match preset {
        Preset::Quick => " --quick",
        Preset::Standard => "",
        Preset::Paper => " --paper",
    }
}

/// The sections of a paper.
fn sections<'a>(paper: &'a Paper, report: &'a Report) -> impl Iterator<Item = &'a Section> {
    report.sections.iter().filter(|section| paper.has(&section.id))
}

/// How many verdicts of each kind, by paper.
fn counts(report: &Report) -> String {
    let verdicts = [Judgement::Agrees, Judgement::ShapeOnly, Judgement::DoesNotAgree, Judgement::ByConstruction].map(|one| one.to_string());
    let mut text = String::from("\n## Verdicts by paper\n\n| paper | studies | claims |");
    for verdict in verdicts.iter().map(String::as_str).chain([NOT_JUDGED]) {
        let _ = write!(text, " {verdict} |");
    }
    text.push_str("\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    let mut row = |name: &str, sections: &[&Section]| {
        let claims: Vec<&ClaimLine> = sections.iter().flat_map(|section| &section.claims).collect();
        let of = |verdict: &String| claims.iter().filter(|claim| claim.verdict == *verdict).count();
        let judged = verdicts.each_ref().map(of);
        let others = claims.len() - judged.iter().sum::<usize>();
        let cells: Vec<String> = [sections.len(), claims.len()].into_iter().chain(judged).chain([others]).map(|n| n.to_string()).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    };
    for paper in PAPERS {
        row(&format!("[{}](#{})", paper.name, paper.name.to_lowercase()), &sections(paper, report).collect::<Vec<_>>());
    }
    row("all", &report.sections.iter().collect::<Vec<_>>());
    text
}

/// How many points of a figure of the papers are listed where the flagship is behind, the worst first.
const LISTED: usize = 4;

/// At how many points of the papers' figures the flagship is ahead of a scheme, level with it, or behind it.
fn standings(report: &Report) -> String {
    let mut text = String::from(STANDINGS);
    let mut sums = [0; 4];
    let mut behind = String::new();
    for section in &report.sections {
        for quality in Quality::ALL {
            let with = |standing: &&Standing| standing.quality == quality;
            let mut whom: Vec<&str> = section.standings.iter().filter(with).map(|standing| standing.with.as_str()).collect();
            whom.dedup();
            for name in whom {
                let all: Vec<&Standing> = section.standings.iter().filter(with).filter(|standing| standing.with == name).collect();
                let of = |place: Place| all.iter().filter(|standing| standing.place() == place).count();
                let counts = [all.len(), of(Place::Ahead), of(Place::Level), of(Place::Behind)];
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum += count;
                }
                let [points, ahead, level, worse] = counts;
                let figure = format!("[{}](../studies/{}/README.md)", escaped(&section.id), section.id);
                let _ = writeln!(text, "| {figure} | {} | {} | {points} | {ahead} | {level} | {worse} |", quality.name(), escaped(name));
                if worse > 0 {
                    let _ = writeln!(behind, "| {figure} | {} | {} |", quality.name(), escaped(&worst(&all)));
                }
            }
        }
    }
    let [points, ahead, level, worse] = sums;
    let _ = writeln!(text, "| all | | | {points} | {ahead} | {level} | {worse} |");
    if !behind.is_empty() {
        let _ = write!(text, "\nWhere it is behind, the worst points of each figure; the figure's own text says why:\n\n");
        let _ = write!(text, "| figure | of what | at |\n|---|---|---|\n{behind}");
    }
    text
}

/// The points of `all` at which the flagship is behind, the worst first, as far as they are listed.
fn worst(all: &[&Standing]) -> String {
    let mut behind: Vec<&&Standing> = all.iter().filter(|standing| standing.place() == Place::Behind).collect();
    behind.sort_by(|a, b| a.better_by().total_cmp(&b.better_by()));
    let told: Vec<String> = behind.iter().take(LISTED).map(|standing| standing.told()).collect();
    let more = behind.len().saturating_sub(LISTED);
    if more == 0 { told.join("; ") } else { format!("{}; and {more} more", told.join("; ")) }
}

/// A paper with its table.
fn of_paper(paper: &Paper, report: &Report) -> String {
    let (name, folder) = (paper.name, paper.folder);
    let mut text =
        format!("\n## {name}\n\n{}. More on [{}](../studies/{folder}/README.md).\n", escaped(paper.work), escaped(paper.subject));
    if !paper.left_out.is_empty() {
        let _ = writeln!(text, "Without a study: {}", escaped(paper.left_out));
    }
    text.push_str("\n| figure or table | claim | what the text says | verdict | measured |\n|---|---|---|---|---|\n");
    for section in sections(paper, report) {
        let claims = section.claims.iter().map(|claim| (claim.id.as_str(), claim.claim.as_str()));
        let beginnings = beginnings([&section.id, &section.title, &section.source], claims);
        let found = section.claims.iter().map(|claim| format!("{} | {}", escaped(&claim.verdict), escaped(measured(claim))));
        for (beginning, found) in beginnings.iter().zip(found.chain(section.claims.is_empty().then(|| " | ".to_owned()))) {
            let _ = writeln!(text, "{beginning} {found} |");
        }
    }
    text
}

/// The numbers of a verdict; why there is none, where there is none.
pub(super) fn measured(claim: &ClaimLine) -> &str {
    if claim.measured.is_empty() { &claim.explanation } else { &claim.measured }
}

/// The rows of a study (its identifier, title and source) up to the verdict: what does not depend on a run. The study stands in
/// the first; one without claims has one row.
fn beginnings<'a>(study: [&str; 3], claims: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let [id, title, source] = study;
    let name = id.rsplit('/').next().unwrap_or(id);
    let figure = format!("[{}](../studies/{id}/README.md) {} ({})", escaped(name), escaped(title), escaped(source));
    let mut rows: Vec<String> = Vec::new();
    for (claim, says) in claims {
        let figure = if rows.is_empty() { &figure } else { "" };
        rows.push(format!("| {figure} | {} | {} |", escaped(claim), escaped(says)));
    }
    if rows.is_empty() {
        rows.push(format!("| {figure} | *none* | |"));
    }
    rows
}

/// Text in a cell of a table, with nothing in it read as markup.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '\\' | '|' | '*' | '_' | '`' | '<' | '[' | ']' | '~' | '&' | '$' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Where the rows of a table of claims begin to depend on a run.
    fn beginnings_of_file(text: &str) -> Vec<String> {
        let mut claims = false;
        let mut found = Vec::new();
        for line in text.lines() {
            claims = line.starts_with("| figure or table |") || (claims && line.starts_with('|'));
            if claims && !line.starts_with("| figure or table |") && !line.starts_with("|---") {
                found.push(before_the_verdict(line).to_owned());
            }
        }
        found
    }

    /// A row up to and with its fourth bar that is not escaped.
    fn before_the_verdict(row: &str) -> &str {
        let bars = row.match_indices('|').map(|(at, _)| at).filter(|at| !row[..*at].ends_with('\\'));
        bars.take(4).last().map_or(row, |at| &row[..=at])
    }

    fn report(claims: Vec<ClaimLine>) -> Report {
        let section = |id: &str, claims| Section {
            id: id.into(),
            title: "a | b".into(),
            source: "EC 5.3".into(),
            summary: String::new(),
            figures: Vec::new(),
            heat_maps: Vec::new(),
            tables: Vec::new(),
            claims,
            standings: Vec::new(),
            parameters: Vec::new(),
        };
        let provenance = vec![("preset".to_owned(), "quick".to_owned())];
        Report { title: String::new(), provenance, sections: vec![section("ec/table1", Vec::new()), section("ec/fig11", claims)] }
    }

    fn claim(id: &str, verdict: &str, measured: &str) -> ClaimLine {
        let (claim, explanation) = ("w_a | w".to_owned(), "no point".to_owned());
        ClaimLine { id: id.into(), claim, verdict: verdict.into(), measured: measured.into(), explanation }
    }

    #[test]
    fn a_study_is_one_row_a_claim_and_no_text_breaks_the_table() {
        let text =
            papers(&report(vec![claim("EC-C4", "agrees with the text", "1 | 2"), claim("EC-C5", "not judged", "")]), Preset::Quick, 7);
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("| figure or")).skip(2).take(3).collect();
        assert_eq!(
            rows,
            [
                "| [table1](../studies/ec/table1/README.md) a \\| b (EC 5.3) | *none* | |  |  |",
                "| [fig11](../studies/ec/fig11/README.md) a \\| b (EC 5.3) | EC-C4 | w\\_a \\| w | agrees with the text | 1 \\| 2 |",
                "|  | EC-C5 | w\\_a \\| w | not judged | no point |",
            ]
        );
        assert!(text.contains("| command | `segstream study run --all --quick --seed 7` |"), "{text}");
        assert!(text.contains("| [EC](#ec) | 2 | 2 | 1 | 0 | 0 | 0 | 1 |"), "{text}");
        assert!(text.contains("| all | 2 | 2 | 1 | 0 | 0 | 0 | 1 |"), "{text}");
    }

    #[test]
    fn the_points_of_each_figure_are_counted_and_the_worst_are_listed() {
        let mut report = report(Vec::new());
        let standing = |x: f64, ours: f64| Standing {
            with: "SSTP, full".into(),
            quality: Quality::Throughput,
            curve: "W".into(),
            x,
            ours,
            theirs: 0.5,
        };
        report.sections[1].standings = vec![standing(1.0, 0.6), standing(2.0, 0.5), standing(3.0, 0.45), standing(4.0, 0.4)];
        let text = papers(&report, Preset::Quick, 1);
        assert!(text.contains("| [ec/fig11](../studies/ec/fig11/README.md) | throughput | SSTP, full | 4 | 1 | 1 | 2 |"), "{text}");
        assert!(text.contains("| all | | | 4 | 1 | 1 | 2 |"), "{text}");
        assert!(text.contains("| throughput | W, 4: 0.4000 against 0.5000; W, 3: 0.4500 against 0.5000 |"), "{text}");
    }

    #[test]
    fn the_papers_run_length_is_not_called_short() {
        assert!(papers(&report(Vec::new()), Preset::Quick, 1).contains("shorter than the papers'"));
        let text = papers(&report(Vec::new()), Preset::Paper, 1);
        assert!(text.contains("--all --paper --seed 1") && !text.contains("shorter than the papers'"));
    }

    #[test]
    fn every_study_and_every_claim_stands_in_the_file_once_and_no_other() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/PAPERS.md");
        let file = fs::read_to_string(&path).expect("docs/PAPERS.md can be read; `cargo xtask bless pictures` makes it");
        let rows = |study: &&segstream_lab::study::Study| {
            beginnings([study.id, study.title, study.source], study.claims.iter().map(|claim| (claim.id, claim.text)))
        };
        let wanted: Vec<String> = PAPERS.iter().flat_map(Paper::studies).flat_map(|study| rows(&study)).collect();
        let found = beginnings_of_file(&file);
        let missing: Vec<&String> = wanted.iter().filter(|row| !found.contains(row)).collect();
        let unknown: Vec<&String> = found.iter().filter(|row| !wanted.contains(row)).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "docs/PAPERS.md is not of these studies: run `cargo xtask bless pictures`.\nmissing: {missing:#?}\nof no study, \
             or of one with other words: {unknown:#?}"
        );
        assert_eq!(found, wanted, "docs/PAPERS.md has rows twice or in another order: run `cargo xtask bless pictures`");
    }
}
