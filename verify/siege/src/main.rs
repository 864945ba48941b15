//! The command `segstream-siege`: see `command`.
//!
//! Invariant: where there is no Linux it says so, and does nothing.

#[cfg(target_os = "linux")]
mod command;

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<std::process::ExitCode> {
    command::run_command()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the attacks need Linux: its proc(5), and its loopback network with many addresses");
}
