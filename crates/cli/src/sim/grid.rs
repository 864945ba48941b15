//! A grid: scenarios that differ in some flags, written as TOML.
//!
//! ```toml
//! scheme = ["sstp", "segstream"]      # a list is swept
//! loss = ["1e-4", "1e-3", "1e-2"]
//! tolerance = "256,4,1"               # a value is the same for all
//! packets = 200_000
//! replications = 5
//! seed = 1
//! ```
//!
//! Called by `segstream sim sweep` and `segstream sim merge`. The names are the flags of `segstream sim`, and their values are read by the
//! same parser.
//!
//! Invariant: the cells and their order depend on the file alone; the last list varies fastest.

use super::arguments::Arguments;
use crate::usage;
use anyhow::{Context as _, Result};
use clap::{Args as _, Command, FromArgMatches as _};
use segstream_lab::plan::Plan;
use segstream_lab::scenario::Scenario;
use std::path::Path;
use toml::{Table, Value};

/// More cells than anyone means.
const CELLS_MAX: usize = 1_000_000;

/// Flags that are no part of a scenario.
const NOT_HERE: [&str; 5] = ["json", "log", "pcap", "check", "threads"];

/// One scenario of a grid.
#[derive(Debug)]
pub(super) struct Cell {
    /// The values of the lists, in their order.
    pub(super) swept: Vec<String>,
    pub(super) scenario: Scenario,
    pub(super) plan: Plan,
    pub(super) seed: u64,
}

/// All scenarios.
#[derive(Debug)]
pub(super) struct Grid {
    /// The names of the lists.
    pub(super) swept: Vec<String>,
    pub(super) cells: Vec<Cell>,
}

impl Grid {
    /// Reads the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Self::parse(&text).map_err(|error| usage::bad(format!("{}: {error}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let mut axes: Vec<(String, Vec<String>)> = Vec::new();
        let mut swept = Vec::new();
        for (name, value) in table {
            if NOT_HERE.contains(&name.as_str()) {
                return Err(format!("{name} is no part of a scenario; give it on the command line, where it has a meaning there"));
            }
            let values = match value {
                Value::Array(values) => {
                    swept.push(name.clone());
                    values.iter().map(|value| word(&name, value)).collect::<Result<Vec<_>, _>>()?
                }
                other => vec![word(&name, &other)?],
            };
            if values.is_empty() {
                return Err(format!("{name} is an empty list, so there would be nothing to run"));
            }
            axes.push((name, values));
        }
        if !axes.iter().any(|(name, _)| name == "scheme") {
            return Err("scheme is missing; give one, such as \"segstream\", or a list of them".to_owned());
        }
        let count = axes.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len()).filter(|count| *count <= CELLS_MAX));
        let count = count.ok_or_else(|| format!("the grid has more than {CELLS_MAX} cells; sweep less"))?;
        let cells = (0..count).map(|at| cell(&axes, &swept, at)).collect::<Result<_, _>>()?;
        Ok(Self { swept, cells })
    }
}

/// A value as it is written on a command line.
fn word(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(is) => Ok(is.to_string()),
        _ => Err(format!("{name} is neither text nor a number nor true or false, nor a list of these")),
    }
}

/// The cell at this place, the last axis varying fastest.
fn cell(axes: &[(String, Vec<String>)], names: &[String], at: usize) -> Result<Cell, String> {
    let mut rest = at;
    let mut chosen: Vec<(&str, &str)> = Vec::with_capacity(axes.len());
    for (name, values) in axes.iter().rev() {
        chosen.push((name, &values[rest % values.len()]));
        rest /= values.len();
    }
    chosen.reverse();
    let shown = || chosen.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
    let arguments = arguments(&chosen).map_err(|error| format!("with {}: {error}", shown()))?;
    if arguments.tandem.is_some() {
        return Err(format!("with {}: a grid has schemes over a black box; xtp is simulated over a tandem of queues", shown()));
    }
    let scenario = arguments.scenario().map_err(|error| format!("with {}: {error}", shown()))?;
    let plan = Plan {
        trial: None,
        packets: scenario.workload.packets,
        replications_min: arguments.replications,
        replications_max: arguments.replications,
        half_width: 1.0,
        losses_min: 0,
    };
    let swept = names.iter().filter_map(|name| chosen.iter().find(|(other, _)| other == name)).map(|(_, value)| (*value).to_owned());
    Ok(Cell { swept: swept.collect(), scenario, plan, seed: arguments.seed })
}

/// What the command line would say.
fn arguments(chosen: &[(&str, &str)]) -> Result<Arguments, String> {
    let mut line = vec!["sim".to_owned()];
    line.extend(chosen.iter().filter(|(name, _)| *name == "scheme").map(|(_, value)| (*value).to_owned()));
    for (name, value) in chosen.iter().filter(|(name, _)| *name != "scheme") {
        match *value {
            "true" => line.push(format!("--{name}")),
            "false" => {}
            value => line.push(format!("--{name}={value}")),
        }
    }
    // Why not all that clap says: the rest is about a command line that nobody has typed.
    let first = |error: clap::Error| error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let matches = Arguments::augment_args(Command::new("sim")).try_get_matches_from(line).map_err(first)?;
    Arguments::from_arg_matches(&matches).map_err(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_swept_and_the_last_varies_fastest() {
        let grid = Grid::parse("loss = [\"none\", 1e-3]\nscheme = [\"sstp\", \"snr\"]\npackets = 2560\nseed = 3\n").unwrap();
        assert_eq!(grid.swept, ["loss", "scheme"]);
        let swept: Vec<Vec<&str>> = grid.cells.iter().map(|cell| cell.swept.iter().map(String::as_str).collect()).collect();
        assert_eq!(swept, [["none", "sstp"], ["none", "snr"], ["0.001", "sstp"], ["0.001", "snr"]]);
        assert!(grid.cells.iter().all(|cell| cell.seed == 3 && cell.plan.packets == 2560));
        assert_eq!(grid.cells[3].scenario.scheme.key(), "snr");
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_cell() {
        for (text, part) in [
            ("loss = 1e-3", "scheme is missing"),
            ("scheme = \"nothing\"", "no scheme"),
            ("scheme = \"sstp\"\nspeed = 3", "--speed"),
            ("scheme = \"sstp\"\nloss = []", "empty list"),
            ("scheme = \"sstp\"\nloss = 7", "loss = 7"),
            ("scheme = \"sstp\"\njson = true", "no part of a scenario"),
            ("scheme = \"xtp\"", "tandem"),
            ("scheme = [[\"sstp\"]]", "neither text"),
            ("scheme = \"sstp\"\n[loss]\na = 1", "neither text"),
            ("scheme = ", "TOML"),
        ] {
            let error = Grid::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let axis = (0..1001).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
        assert!(Grid::parse(&format!("scheme = \"sstp\"\nseed = [{axis}]\nwindow = [{axis}]")).unwrap_err().contains("more than"));
    }
}
