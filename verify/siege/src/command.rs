//! Every attack in turn, a table, and exit status 1 when a bound is broken.
//!
//! Called by `main`. `segstream-siege [--only NAME] [--seconds N] [--json]` starts itself again as the victim and as an
//! honest sender. Progress is said on standard error, the table on standard output.
//!
//! Invariant: everything ends by itself, also when a victim has failed.

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use segstream_siege::attacks::{ATTACKS, Attack, Siege};
use segstream_siege::outcome::Outcome;
use segstream_siege::{sender, victim};
use std::io::Write as _;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Attacks on endpoints over loopback, with what the victims spend measured and bounded")]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// The names of attacks contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// How long the load lasts.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(3..))]
    seconds: u64,
    /// A line of JSON for each attack instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Role {
    /// The endpoint under attack; started by the suite.
    #[command(hide = true)]
    Victim(victim::Settings),
    /// The honest sender beside an attack; started by the suite.
    #[command(hide = true)]
    Sender {
        /// Its rate.
        #[arg(long)]
        megabits: u64,
    },
}

pub(crate) fn run_command() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    match &arguments.role {
        Some(Role::Victim(settings)) => victim::run(settings).map(|()| ExitCode::SUCCESS),
        Some(Role::Sender { megabits }) => sender::run(*megabits).map(|()| ExitCode::SUCCESS),
        None => besiege(&arguments),
    }
}

fn besiege(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let attacks: Vec<_> = ATTACKS.iter().filter(|(name, _)| name.contains(&arguments.only)).collect();
    if attacks.is_empty() {
        let names: Vec<_> = ATTACKS.iter().map(|(name, _)| *name).collect();
        let message = format!("no attack is called like \"{}\"; there are: {}", arguments.only, names.join(", "));
        Arguments::command().error(ErrorKind::InvalidValue, message).exit();
    }
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let siege = Siege { program, small: false, seconds: arguments.seconds, victim: Vec::new() };
    let mut out = std::io::stdout().lock();
    if !arguments.json {
        writeln!(out, "{}", Outcome::head())?;
    }
    let mut held = true;
    for (name, attack) in attacks {
        eprintln!("{name}");
        let outcome = attack_once_or_twice(&siege, name, *attack)?;
        held &= outcome.held();
        if arguments.json {
            let mut line = serde_json::to_value(&outcome)?;
            line["amplification"] = outcome.amplification().into();
            line["held"] = outcome.held().into();
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{outcome}")?;
        }
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One attack. The load, which compares rates, is tried once more on a machine that may have been busy elsewhere.
fn attack_once_or_twice(siege: &Siege, name: &str, attack: Attack) -> anyhow::Result<Outcome> {
    let outcome = attack(siege).with_context(|| format!("the attack {name}"))?;
    if name != "load" || outcome.held() {
        return Ok(outcome);
    }
    eprintln!("  a bound is broken; once more, since the machine may have been busy elsewhere:\n{outcome}");
    attack(siege).with_context(|| format!("the attack {name}, for the second time"))
}
