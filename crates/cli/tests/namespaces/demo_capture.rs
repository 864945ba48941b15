//! A capture of the demonstration, made by Wireshark's own program, is decoded whole: no packet of it has an error.
//!
//! Run: `cargo test -p segstream-cli --test namespaces -- --ignored demo_capture`. Skipped, and said so, where there is no right to make
//! namespaces, or no tshark, dumpcap and ethtool, unless SEGSTREAM_REQUIRE_TSHARK=1.

use crate::process::binary;
use crate::testbed::{Side, ends};
use rustix::process::Signal;
use segstream_testbed::tshark;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Slices of each of the eight runs.
const SLICES: &str = "2";

/// Whether the programs that capture are there.
fn is_installed() -> bool {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    let installed = ["tshark", "dumpcap", "ethtool"].into_iter().all(runs);
    assert!(installed || std::env::var_os(tshark::REQUIRE).is_none_or(|set| set != "1"), "tshark, dumpcap or ethtool is not installed");
    if !installed {
        eprintln!("SKIPPED: tshark, dumpcap or ethtool is not installed");
    }
    installed
}

#[test]
#[ignore = "takes minutes: the dissector decrypts some 50 MB in Lua"]
fn tshark_decodes_every_packet_of_the_captured_demonstration_without_an_error() {
    if !is_installed() {
        return;
    }
    let Some(ends) = ends(["10.77.9.1", "10.77.9.2"]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (capture, keys, out, pictures) = (path("demo.pcap"), path("keys.txt"), path("out"), path("pictures"));
    std::fs::create_dir(&pictures).unwrap();
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.png");
    std::fs::copy(picture, Path::new(&pictures).join("one.png")).unwrap();
    let inside = |program: &str, words: &[&str]| ends.start(Side::A, program.as_ref(), words, Stdio::null());
    inside("ip", &["link", "set", "lo", "up"]).end().expect(0);
    // Why: otherwise a packet of the capture holds many datagrams (segmentation offload).
    inside("ethtool", &["-K", "lo", "tx-udp-segmentation", "off", "gso", "off"]).end().expect(0);
    let mut capturing = inside("dumpcap", &["-q", "-i", "lo", "-P", "-B", "64", "-w", &capture]);
    capturing.wait_for("File:");
    let demo = inside(binary().to_str().unwrap(), &["demo", "--slices", SLICES, "--input", &pictures, "--out", &out, "--key-log", &keys]);
    demo.end().expect(0);
    capturing.signal(Signal::INT);
    capturing.end().expect(0);

    let (script, keys) = (tshark::segstream_script(), format!("segstream.key_log:{keys}"));
    let fields = ["-T", "fields", "-E", "separator=/t", "-e", "_ws.col.Protocol", "-e", "_ws.expert.message", "-e", "_ws.col.Info"];
    let arguments = ["-X", &script, "-o", &keys, "-Y", "udp"].into_iter().chain(fields);
    let Some(text) = tshark::dissected(Path::new(&capture), arguments) else { return };
    let mut kinds = BTreeMap::<&str, u64>::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.splitn(3, '\t').collect();
        assert_eq!(columns[0], "Segstream", "{line}");
        assert_eq!(columns[1], "", "an expert says: {line}");
        assert!(!columns[2].contains("sealed"), "{line}");
        *kinds.entry(columns[2].split(' ').next().unwrap()).or_default() += 1;
    }
    // Eight runs, each seen on both sides of the emulated path.
    assert!(kinds["DT"] > 8 * 2 * 1000 && kinds["CR"] >= 16 && kinds["RXS"] > 100 && kinds["TXS"] > 100 && kinds["DR"] > 0, "{kinds:?}");
}
