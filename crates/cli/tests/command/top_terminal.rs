//! `top` in a terminal: a pseudo-terminal whose other end is a terminal in memory. One peer and five hundred, at 80 x 24 and 200 x 60.

use crate::metrics::address;
use crate::process::{binary, home, start};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use segstream::Contract;
use segstream::blocking::Endpoint;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// `top` in a terminal.
struct Terminal {
    master: File,
    screen: Arc<Mutex<vt100::Parser>>,
    child: Child,
}

impl Terminal {
    /// Starts `top` for the metrics at `address`.
    fn start((columns, rows): (u16, u16), address: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let end = |_| -> OwnedFd { open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap() };
        let [input, output, errors] = [0, 1, 2].map(end).map(Stdio::from);
        let master = File::from(master);
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        // Why setsid: the terminal must control the process, so that a change of its size is told.
        let mut top = Command::new("setsid");
        top.args(["--ctty"]).arg(binary()).args(["top", address]).env("TERM", "xterm-256color").env("HOME", home());
        let child = top.stdin(input).stdout(output).stderr(errors).spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)));
        let (mut written, shown) = (master.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal is gone when the process is: then there is an error.
            while let Ok(count @ 1..) = written.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { master, screen, child }
    }

    fn resize(&self, (columns, rows): (u16, u16)) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.master, size(columns, rows)).unwrap();
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// The rows of the screen once it holds what is asked for.
    fn wait(&self, what: &str, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let rows = self.rows();
            if holds(&rows) {
                return rows;
            }
            assert!(Instant::now() < deadline, "{what} is not on the screen:\n{}", rows.join("\n"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn rows(&self) -> Vec<String> {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        screen.screen().rows(0, columns.into()).collect()
    }

    /// Ends it; whether the terminal is as before.
    fn quit(mut self) {
        self.press("q");
        assert!(self.child.wait().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let screen = self.screen.lock().unwrap();
            let restored = !screen.screen().alternate_screen() && !screen.screen().hide_cursor();
            drop(screen);
            if restored {
                return;
            }
            assert!(Instant::now() < deadline, "the terminal is not as before");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Of a process that has ended there is nothing to end.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

const fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Whether the screen is the whole picture: sums above, the signs of the verdicts below, and a series in the detail.
fn is_whole(rows: &[String], connections: &str) -> bool {
    rows[0].starts_with(connections)
        && rows[1].contains("PEER")
        && rows.last().is_some_and(|row| row.contains("within tolerance") && row.contains("q: quit"))
        && rows.iter().any(|row| row.contains("round trip"))
}

#[test]
fn in_a_terminal_of_80_x_24_and_of_200_x_60_one_peer_and_five_hundred_are_shown_and_chosen_by_keys() {
    let mut receiver = start(["recv", "--listen", "127.0.0.1:0", "--insecure", "--keep", "--metrics", "127.0.0.1:0"]);
    let at = receiver.listening();
    let metrics = address(&mut receiver);
    let mut endpoint = Endpoint::builder().insecure().driven_in_background().bind(([127, 0, 0, 1], 0)).unwrap();
    let ours = format!("127.0.0.1:{}", endpoint.local_addr().port());
    let first = endpoint.connect(at, vec![Contract::default()]).unwrap();

    let mut terminal = Terminal::start((80, 24), &metrics);
    let rows = terminal.wait("one connection", |rows| is_whole(rows, "1 connection,") && rows[2].starts_with(&ours));
    assert_eq!(rows.len(), 24);
    terminal.resize((200, 60));
    let rows = terminal.wait("the larger picture", |rows| is_whole(rows, "1 connection,") && rows[1].contains("QUEUE"));
    assert_eq!(rows.len(), 60);

    // Why one after the other: a host has sixteen places for set-ups.
    for _ in 1..500 {
        endpoint.connect(at, vec![Contract::default()]).unwrap();
    }
    terminal.wait("500 connections", |rows| {
        is_whole(rows, "500 connections,") && rows.iter().filter(|row| row.starts_with(&ours)).count() >= 30
    });
    // The last one: the table scrolls to it, and the detail is its own.
    terminal.press("\u{1b}[F");
    let detail = |rows: &[String], number: u32| rows.iter().any(|row| row.contains(&format!(" connection {number} with ")));
    terminal.wait("the last connection", |rows| is_whole(rows, "500 connections,") && detail(rows, 499));
    terminal.press("k");
    terminal.wait("the one before", |rows| detail(rows, 498));
    terminal.resize((80, 24));
    let rows = terminal.wait("the smaller picture", |rows| is_whole(rows, "500 connections,") && detail(rows, 498));
    assert!(rows.iter().filter(|row| row.starts_with(&ours)).count() >= 10, "{}", rows.join("\n"));
    terminal.press("\u{1b}[H");
    terminal.wait("the first connection", |rows| detail(rows, 0));
    terminal.quit();
    assert!(endpoint.connection(first).statistics().is_ok());
    receiver.interrupt();
}
