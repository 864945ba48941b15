//! The seeds of the targets that take bytes of the protocol, written by this program.
//!
//! `BLESS=1 cargo test --manifest-path verify/fuzz/Cargo.toml --no-default-features --lib seeds` writes them; the
//! test compares. Inputs that once failed lie beside them, and are not touched.

use crate::endpoint_datagrams::{flag, step};
use std::path::{Path, PathBuf};

/// A seed: its target, its name, its bytes.
type Seed = (&'static str, String, Vec<u8>);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shipments of the specification's test vectors, without their seals.
fn shipments() -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(root().join("docs/spec/13-test-vectors.md")).unwrap();
    let dumps = text.split("```text").skip(1).map(|rest| rest.split("```").next().unwrap());
    dumps.map(|dump| dump.lines().flat_map(bytes_of_line).collect::<Vec<u8>>()).map(|bytes| bytes[..bytes.len() - 4].to_vec()).collect()
}

/// The bytes in a line of a dump: behind the offset, up to the field's name.
fn bytes_of_line(line: &str) -> Vec<u8> {
    let hex = line.get(6..line.len().min(30)).unwrap_or("");
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn send(stream: u8, bytes: u16) -> Vec<u8> {
    let [high, low] = bytes.to_be_bytes();
    vec![step::SEND, 0, stream, high, low]
}

fn deliver(count: u8) -> [u8; 4] {
    [step::ADVANCE, 12, step::DELIVER, count]
}

fn crafted(side: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![step::CRAFTED, side, kind, 0, body.len() as u8];
    bytes.extend_from_slice(body);
    bytes
}

fn plays() -> Vec<(&'static str, Vec<u8>)> {
    let turns = |count: usize| deliver(8).repeat(count);
    let to_responder = [flag::RESPONDER];
    let transfer = [send(0, 3000), send(1, 4000), send(2, 500), turns(6), vec![step::READ, flag::RESPONDER], turns(4)].concat();
    let losses = [
        send(0, 4000),
        send(1, 4000),
        [[step::LOSE, flag::RESPONDER], [step::DELAY, flag::RESPONDER], [step::DUPLICATE, flag::RESPONDER]].concat(),
        turns(10),
        vec![step::READ, flag::RESPONDER],
        turns(4),
    ];
    let open = [
        vec![step::OPEN_SEGMENT, 0, 2, step::APPEND, 0, 2, 4, 0],
        turns(2),
        vec![step::ADVANCE, 17, step::APPEND, flag::CHOICE, 2, 0, 50],
        turns(4),
        vec![step::READ, flag::RESPONDER],
    ];
    let closing = [send(0, 900), vec![step::FINISH, 0, 0, step::CLOSE, 0], turns(10), vec![step::CLOSE, flag::RESPONDER], turns(6)];
    let aborting = [send(0, 900), vec![step::CLOSE, flag::CHOICE], turns(2)];
    let reclass = [vec![step::RECLASS, 0, 5, step::RECLASS, flag::CHOICE, 12], send(0, 2000), turns(8)];
    let stream = [vec![step::OPEN_STREAM, 0, 100, 2, 1], turns(2), send(3, 900), turns(4)];
    let changed = [send(1, 2000), [vec![step::CHANGED], to_responder.to_vec(), vec![0, 1, 0, 13, 3]].concat(), turns(6)];
    let raw = [vec![step::RAW, flag::RESPONDER, 16], vec![0x45; 16], turns(1)];
    vec![
        ("transfer", transfer),
        ("losses", losses.concat()),
        ("open", open.concat()),
        ("closing", closing.concat()),
        ("aborting", aborting.concat()),
        ("reclass", reclass.concat()),
        ("stream", stream.concat()),
        ("changed", changed.concat()),
        ("raw", raw.concat()),
    ]
}

/// Handshakes: datagrams to either end in turn, and what may become of one of them.
fn handshakes() -> Vec<(&'static str, Vec<u8>)> {
    use crate::handshake::step::{ADVANCE, CHANGE, CUT, DELAY, DELIVER, ELSEWHERE, LOSE, RAW, RESPONDER, TWICE};
    let turn = vec![DELIVER | RESPONDER, DELIVER, ADVANCE, 8];
    let turns = |count: usize| turn.repeat(count);
    let at = |place: usize, steps: &[u8]| [turns(place), steps.to_vec(), turns(12 - place)].concat();
    vec![
        ("through", turns(14)),
        ("a_lost_request", at(0, &[LOSE | RESPONDER, ADVANCE, 18])),
        ("a_lost_answer", at(2, &[LOSE, ADVANCE, 18])),
        ("twice", at(1, &[TWICE | RESPONDER, TWICE])),
        ("late", at(2, &[DELAY, DELAY | RESPONDER])),
        ("from_elsewhere", at(1, &[TWICE | RESPONDER | ELSEWHERE, ADVANCE, 18])),
        ("a_changed_hello", at(1, &[CHANGE | RESPONDER, 1, 0, 90, 7, 1, 0, 1])),
        ("a_changed_certificate", at(2, &[CHANGE, 0, 0, 200, 9, ADVANCE, 18])),
        ("cut", at(2, &[CUT | RESPONDER, 0, 40, ADVANCE, 18])),
        ("any_bytes", at(3, &[RAW | RESPONDER, 12, 0x60, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7])),
        ("moved", [turns(6), vec![TWICE | RESPONDER | ELSEWHERE], turns(6)].concat()),
    ]
}

fn seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = Vec::new();
    for (index, bytes) in shipments().into_iter().enumerate() {
        let kind = bytes[0] & 0x0f;
        // Kinds are counted as in the header: 0 to 4 set-up and close, 5 to 7 data and state.
        let side = if matches!(kind, 0 | 5 | 6) { flag::RESPONDER } else { 0 };
        let turn = deliver(4);
        let play = [send(0, 2000), turn.to_vec(), crafted(side, kind, &bytes[9..]), deliver(8).repeat(3)].concat();
        seeds.push(("endpoint_datagrams", format!("vector_{}", index + 1), play));
        seeds.push(("decode_shipment", format!("vector_{}", index + 1), bytes));
    }
    seeds.extend(plays().into_iter().map(|(name, bytes)| ("endpoint_datagrams", name.to_owned(), bytes)));
    seeds.extend(handshakes().into_iter().map(|(name, bytes)| ("handshake", name.to_owned(), bytes)));
    seeds
}

#[test]
fn the_seeds_are_those_this_program_writes() {
    let corpus = root().join("verify/fuzz/corpus");
    for (target, name, bytes) in seeds() {
        let path = corpus.join(target).join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(corpus.join(target)).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let written = std::fs::read(&path).unwrap_or_default();
        assert!(written == bytes, "{} is not what this program writes; run this test with BLESS=1", path.display());
    }
}
