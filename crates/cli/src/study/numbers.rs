//! The numbers of a study: its verdicts and its tables, as a file beside its pictures.
//!
//! Called by `study run`, which writes it as `numbers.md`; `cargo xtask bless pictures` copies that to the study's folder as `NUMBERS.md`.
//!
//! Invariant: nothing stands in it that the run did not give; no text of a study is read as markup.

use super::papers::escaped;
use segstream_lab::plan::Preset;
use segstream_lab::report::Section;
use std::fmt::Write as _;

/// The whole file of one study, made with this preset and seed.
pub(super) fn numbers(section: &Section, preset: Preset, seed: u64) -> String {
    let length = super::papers::length(preset);
    let mut text = format!(
        "# Numbers of {}\n\nMade by the run that made the pictures beside it and docs/PAPERS.md, `segstream study run --all{length} --seed \
         {seed}`; text that\nnames another preset has its numbers from that one.\n",
        escaped(&section.id)
    );
    if !section.claims.is_empty() {
        text.push_str("\n| claim | verdict | measured |\n|---|---|---|\n");
        for claim in &section.claims {
            let _ =
                writeln!(text, "| {} | {} | {} |", escaped(&claim.id), escaped(&claim.verdict), escaped(super::papers::measured(claim)));
        }
    }
    for table in &section.tables {
        let _ = write!(text, "\n## {}\n\n", escaped(&table.title));
        let row = |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(" | "));
        text.push_str(&row(&table.columns));
        let _ = writeln!(text, "|{}", "---|".repeat(table.columns.len()));
        for cells in &table.rows {
            text.push_str(&row(cells));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_lab::figure::TextTable;
    use segstream_lab::report::ClaimLine;

    #[test]
    fn verdicts_and_tables_stand_in_the_file_and_no_text_breaks_them() {
        let claim = ClaimLine {
            id: "EC-C5".into(),
            claim: String::new(),
            verdict: "shape only".into(),
            measured: "1 | 2".into(),
            explanation: String::new(),
        };
        let table = TextTable { title: "w_a".into(), columns: vec!["p".into(), "|".into()], rows: vec![vec!["1".into(), "2".into()]] };
        let section = Section {
            id: "ec/fig11".into(),
            title: String::new(),
            source: String::new(),
            summary: String::new(),
            figures: Vec::new(),
            heat_maps: Vec::new(),
            tables: vec![table],
            claims: vec![claim],
            standings: Vec::new(),
            parameters: Vec::new(),
        };
        let text = numbers(&section, Preset::Quick, 1);
        assert!(text.contains("--all --quick --seed 1`"), "{text}");
        assert!(text.contains("| EC-C5 | shape only | 1 \\| 2 |\n"), "{text}");
        assert!(text.ends_with("\n## w\\_a\n\n| p | \\| |\n|---|---|\n| 1 | 2 |\n"), "{text}");
    }
}
