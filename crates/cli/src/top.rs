//! `segstream top`: the connections of running transfers, live.
//!
//! Called from the command line. It asks each process for its metrics once a period, over the socket that `send` and `recv` of this user
//! have, or at the addresses that were given with their `--metrics`.
//!
//! Invariant: it only reads; the terminal is as before when it ends, also when it is interrupted.

mod history;
mod scrape;
mod view;

use crate::address;
use crate::local_sockets;
use crate::quantity;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use history::History;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use scrape::Source;
use segstream_base::Duration;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;

/// In this time a process that is asked publishes twice.
const PUBLICATIONS_TAKE: std::time::Duration = std::time::Duration::from_millis(2200);
/// The size of the view where there is no terminal.
const PAGE: (u16, u16) = (120, 40);

/// Shows the connections of running transfers: rates, loss, round trip, and the verdicts of each stream.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  segstream top\n  segstream top 192.0.2.1:9911\n\n\
                        Without an address it shows every `send` and `recv` of this user on this machine. With one it shows the process \
                        that serves its metrics there: recv --metrics 192.0.2.1:9911.\n\n\
                        If standard output is not a terminal, it prints one view and ends.")]
pub(crate) struct Arguments {
    /// Where metrics are served; none for the processes of this user on this machine.
    #[arg(value_name = "ADDR", value_parser = address::numeric)]
    addresses: Vec<SocketAddr>,
    /// How often values are read.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration, default_value = "1s")]
    interval: Duration,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut watch = Watch { arguments, history: History::default() };
    if io::stdout().is_terminal() {
        let mut terminal = ratatui::try_init().context("the terminal cannot be used; redirect the output to get one view as text")?;
        let outcome = watch.run(&mut terminal);
        ratatui::restore();
        outcome?;
    } else {
        watch.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is shown.
struct Watch<'a> {
    arguments: &'a Arguments,
    history: History,
}

impl Watch<'_> {
    /// Reads every source once.
    fn scrape(&mut self) -> Result<()> {
        let sources: Vec<Source> = if self.arguments.addresses.is_empty() {
            let folder = local_sockets::folder()?;
            local_sockets::list(&folder).into_iter().map(|(process, path)| Source::Process(process, path)).collect()
        } else {
            self.arguments.addresses.iter().copied().map(Source::Address).collect()
        };
        let gone: Vec<Source> =
            self.history.connections.keys().map(|(source, _)| source).filter(|source| !sources.contains(source)).cloned().collect();
        gone.iter().for_each(|source| self.history.forget(source));
        for source in &sources {
            match source.scrape() {
                Ok(samples) => self.history.on_samples(source, &samples),
                Err(error) => self.on_failure(source, &error),
            }
        }
        Ok(())
    }

    fn on_failure(&mut self, source: &Source, error: &io::Error) {
        match source {
            // Nobody is behind the socket: its process was killed.
            Source::Process(_, path) if error.kind() == ErrorKind::ConnectionRefused => {
                // A socket that cannot be removed is looked at again.
                _ = std::fs::remove_file(path);
                self.history.forget(source);
            }
            Source::Process(..) if error.kind() == ErrorKind::NotFound => self.history.forget(source),
            _ => self.history.on_failure(source, format!("no metrics; check the address and --metrics there ({error})")),
        }
    }

    /// Shows frames until the user ends it.
    fn run(&mut self, terminal: &mut ratatui::DefaultTerminal) -> Result<()> {
        let interval = std::time::Duration::from(self.arguments.interval);
        let mut selected = 0_usize;
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                self.scrape()?;
                next = Instant::now() + interval;
            }
            let last = self.history.connections.len().saturating_sub(1);
            selected = selected.min(last);
            terminal.draw(|frame| view::draw(frame, &self.history, selected))?;
            if !event::poll(next.saturating_duration_since(Instant::now()))? {
                continue;
            }
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Up | KeyCode::Char('k') => selected = selected.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => selected = (selected + 1).min(last),
                    KeyCode::PageUp => selected = selected.saturating_sub(20),
                    KeyCode::PageDown => selected = (selected + 20).min(last),
                    KeyCode::Home => selected = 0,
                    KeyCode::End => selected = last,
                    _ => {}
                }
            }
        }
    }

    /// Prints one view. Why several scrapes: the first asks for values, and rates need two publications, which are a second apart.
    fn print(&mut self) -> Result<()> {
        let end = Instant::now() + PUBLICATIONS_TAKE;
        while Instant::now() < end {
            self.scrape()?;
            std::thread::sleep(self.arguments.interval.min(Duration::from_millis(500)).into());
        }
        self.scrape()?;
        // Why an error only if nothing can be shown: of several addresses the others are still of use.
        if let Some((source, why)) = self.history.failures.first_key_value().filter(|_| self.history.connections.is_empty()) {
            bail!("{source}: {why}");
        }
        let (columns, rows) = PAGE;
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap_or_else(|never| match never {});
        terminal.draw(|frame| view::draw(frame, &self.history, 0)).unwrap_or_else(|never| match never {});
        let buffer = terminal.backend().buffer();
        let text: String = buffer
            .content()
            .chunks(columns.into())
            .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned())
            .filter(|line| !line.is_empty())
            .map(|line| line + "\n")
            .collect();
        Ok(io::stdout().write_all(text.as_bytes())?)
    }
}
