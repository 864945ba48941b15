//! The black box of ns-3: a program that is compiled against what is installed, and run.
//!
//! Called by `comparison`.

use crate::Outcome;
use crate::cases::{Case, Losses};
use anyhow::{Context as _, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules that the program needs.
const MODULES: [&str; 6] = ["core", "network", "internet", "bridge", "point-to-point", "traffic-control"];

/// The compiled program.
pub(crate) struct Ns3 {
    program: PathBuf,
}

impl Ns3 {
    /// Compiles the program; `None` where there is no ns-3.
    ///
    /// Why not by pkg-config: what Debian's ns-3 says to it is not what a compiler takes.
    pub(crate) fn build() -> Result<Option<Self>> {
        let Some((folder, prefix)) = libraries() else { return Ok(None) };
        if !Path::new("/usr/include/ns3/core-module.h").is_file() {
            return Ok(None);
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let built = here.join("../../target/ns3");
        std::fs::create_dir_all(&built).with_context(|| format!("{} cannot be made", built.display()))?;
        let (source, program) = (here.join("black_box.cpp"), built.join("black_box"));
        let changed = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
        if changed(&program) > changed(&source) {
            return Ok(Some(Self { program }));
        }
        let mut compile = Command::new("g++");
        compile.args(["-std=c++17", "-O1", "-Wall", "-o"]).arg(&program).arg(&source).arg("-L").arg(folder);
        compile.args(MODULES.map(|module| format!("-l{prefix}{module}")));
        let output = compile.output().context("g++ could not be started; install it")?;
        ensure!(output.status.success(), "{compile:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
        Ok(Some(Self { program }))
    }

    /// Sends the packets of a run.
    pub(crate) fn run(&self, case: &Case, run: u32, schedule: &[(u64, u32)]) -> Result<Outcome> {
        let folder = self.program.parent().context("the program has no folder")?;
        let (leaves, arrives) = (folder.join("schedule.txt"), folder.join("outcome.txt"));
        let mut text = String::new();
        for (at, bytes) in schedule {
            let _ = writeln!(text, "{at} {bytes}");
        }
        std::fs::write(&leaves, text).with_context(|| format!("{} cannot be written", leaves.display()))?;
        let loss = match case.loss {
            Losses::None => "none".to_owned(),
            Losses::List(numbers) => format!("list:{}", numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
            Losses::Independent(probability) => format!("iid:{probability}"),
        };
        let mut command = Command::new(&self.program);
        command.arg(&leaves).arg(&arrives).arg(format!("--rate={}", case.rate_bps)).arg(format!("--delay={}", case.delay_ns));
        command.arg(format!("--queue={}", case.queue_packets)).arg(format!("--aqm={}", case.aqm));
        command.arg(format!("--loss={loss}")).arg(format!("--seed={}", run + 1));
        let output = command.output().with_context(|| format!("{command:?}"))?;
        ensure!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&arrives).with_context(|| format!("{} cannot be read", arrives.display()))?;
        let outcome: Outcome = text.lines().map(|line| line.parse().ok()).collect();
        if outcome.len() != schedule.len() {
            bail!("ns-3 tells of {} packets, {} were sent", outcome.len(), schedule.len());
        }
        Ok(outcome)
    }
}

/// Where the libraries of ns-3 are, and what stands before the name of a module: `ns3.37-` for instance.
fn libraries() -> Option<(PathBuf, String)> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    folders.iter().map(PathBuf::from).find_map(|folder| {
        let names = std::fs::read_dir(&folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let prefix = names
            .filter_map(|name| Some(name.strip_prefix("lib")?.strip_suffix("core.so")?.to_owned()))
            .find(|name| name.starts_with("ns3"))?;
        Some((folder, prefix))
    })
}
