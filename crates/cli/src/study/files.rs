//! Writes what a study gave: the report, the table of the papers, and for each study its points, pictures and their tables.
//!
//! Called by `study run`.
//!
//! Invariant: only files of the names below are written, under the output directory.

use anyhow::{Context as _, Result};
use segstream_lab::drawing::{Paper, csv, heat_map_csv, heat_map_svg, page, svg};
use segstream_lab::report::Report;
use segstream_lab::study::Finished;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes all files; returns the report's.
pub(super) fn write(out: &Path, report: &Report, finished: &[Finished]) -> Result<PathBuf> {
    for finished in finished {
        let folder = out.join(finished.study.id);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        keep(&folder.join("points.csv"), &finished.measured.csv())?;
        for figure in &finished.section.figures {
            keep(&folder.join(format!("{}.svg", figure.id)), &svg(figure))?;
            keep(&folder.join(format!("{}.csv", figure.id)), &csv(figure))?;
        }
        for map in &finished.section.heat_maps {
            keep(&folder.join(format!("{}.svg", map.id)), &heat_map_svg(map, Paper::White))?;
            keep(&folder.join(format!("{}.csv", map.id)), &heat_map_csv(map))?;
        }
    }
    keep(&out.join("report.json"), &serde_json::to_string_pretty(report).context("the report has no JSON form")?)?;
    let path = out.join("report.html");
    keep(&path, &page(report))?;
    Ok(path)
}

/// Writes the table of the papers beside the report. Its links lead where `docs/PAPERS.md` stands, not from here.
pub(super) fn write_papers(out: &Path, text: &str) -> Result<()> {
    keep(&out.join("papers.md"), text)
}

/// Writes the numbers of a study beside its pictures.
pub(super) fn write_numbers(out: &Path, study: &str, text: &str) -> Result<()> {
    keep(&out.join(study).join("numbers.md"), text)
}

fn keep(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
