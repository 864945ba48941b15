//! Nothing that leaves through metrics, qlogs, logs or `top` tells a key, a code, payload or the name of a file.
//!
//! Each secret has a canary, which is looked for in everything that was written, as it is, in hex and in base64.

use crate::metrics::{address, get};
use crate::process::{binary, content, link, start_with_variables};
use data_encoding::{BASE64_NOPAD, HEXLOWER, HEXUPPER};
use std::path::Path;

const NAME: &str = "canary-of-the-name";
const PAYLOAD: &[u8] = b"<canary of the payload, which nobody but the two ends may read>";

/// The forms in which a secret could be told. Of base64 the part that does not depend on what stands before it.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let text = |text: String| text.into_bytes();
    let shifted = (0..3).map(|skip| {
        let rest = &secret[skip..];
        text(BASE64_NOPAD.encode(&rest[..rest.len() / 3 * 3]))
    });
    [secret.to_vec(), text(HEXLOWER.encode(secret)), text(HEXUPPER.encode(secret))].into_iter().chain(shifted).collect()
}

fn tells(text: &[u8], secret: &[u8]) -> bool {
    forms(secret).iter().any(|form| text.windows(form.len()).any(|window| window == form))
}

/// Everything below a folder, with its name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

/// Bytes of the private key in a file of PKCS#8 in PEM. `recv` makes an Ed25519 key, whose 32 bytes follow 16 of ASN.1 (RFC 8410 7).
fn key_bytes(home: &Path) -> Vec<u8> {
    let pem = std::fs::read_to_string(home.join("segstream/identity.pem")).unwrap();
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let bytes = BASE64_NOPAD.decode(base64.trim_end_matches('=').as_bytes()).unwrap();
    bytes[16..48].to_vec()
}

#[test]
fn metrics_qlogs_logs_and_top_tell_no_key_code_payload_or_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (told, home_of_sender, home_of_receiver) = (path("told"), path("sender"), path("receiver"));
    for folder in [&told, &home_of_sender, &home_of_receiver] {
        std::fs::create_dir(folder).unwrap();
    }
    let file = directory.path().join(NAME);
    std::fs::write(&file, PAYLOAD.repeat(160_000)).unwrap();
    let in_told = |name: &str| format!("{told}/{name}");
    let flags = ["recv", "--listen", "127.0.0.1:0", "--keep", "--json", "--metrics", "127.0.0.1:0", "--stats", "100ms"].map(str::to_owned);
    let keys = path("keys.txt");
    let flags = flags.into_iter().chain(["--key-log".to_owned(), keys.clone()]);
    let flags = flags.chain(["--qlog".to_owned(), in_told("")]).chain(["--loss-log".to_owned(), in_told("losses.jsonl")]);
    let flags = flags.chain(["--segments-json".to_owned(), in_told("segments.jsonl"), "--stats-json".to_owned(), in_told("stats.jsonl")]);
    let mut receiver = start_with_variables(Path::new(&home_of_receiver), &[], flags);
    let at = loop {
        if let Some(at) = receiver.line().strip_prefix("listening on ") {
            break at.to_owned();
        }
    };
    let invitation = loop {
        let line = receiver.line();
        if line.contains("SEGSTREAM_CODE=") {
            break line;
        }
    };
    let word = |after: &str| invitation.split(after).nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let (code, peer) = (word("SEGSTREAM_CODE="), word("--peer "));
    let metrics = address(&mut receiver);

    let (link, at_link) = link(&at, &["--bandwidth", "20mbit", "--loss", "2%", "--rtt", "10ms"]);
    let flags = [
        "send",
        &at_link,
        file.to_str().unwrap(),
        "--peer",
        &peer,
        "--code",
        "--json",
        "--tolerance",
        "64,4,2",
        "--metrics",
        "127.0.0.1:0",
    ];
    let flags = flags.map(str::to_owned).into_iter().chain(["--qlog".to_owned(), in_told("")]);
    let flags = flags.chain(["--segments-json".to_owned(), in_told("sent.jsonl"), "--stats-json".to_owned(), in_told("sender.jsonl")]);
    let variable = format!("SEGSTREAM_CODE={code}");
    let mut sender = start_with_variables(Path::new(&home_of_sender), &[&variable], flags);
    let metrics_of_sender = address(&mut sender);
    sender.wait_for("connected");
    let mut texts = Vec::new();
    // While the transfer goes on: the second scrape has what the first asked for.
    for name in ["first", "second"] {
        std::thread::sleep(std::time::Duration::from_millis(1100));
        for (end, address) in [("receiver", &metrics), ("sender", &metrics_of_sender)] {
            texts.push((format!("{name} scrape of the {end}"), get(address, "GET", "/metrics").1.into_bytes()));
        }
    }
    let top = std::process::Command::new(binary()).args(["top", &metrics]).output().unwrap();
    texts.push(("top".to_owned(), top.stdout));
    let sent = sender.end().expect(0);
    link.interrupt();
    let received = receiver.interrupt().expect(0);
    texts.extend(files(Path::new(&told)));
    assert!(texts.len() >= 5 + 7, "{:?}", texts.iter().map(|(name, _)| name).collect::<Vec<_>>());

    // What is told of segments and losses in histograms, and in events, was among what is searched.
    let holds = |part: &str| texts.iter().any(|(_, text)| tells(text, part.as_bytes()));
    for part in ["segstream_loss_run_shipments_bucket", "segstream_segment_verdict_seconds_bucket", "\"assembly_ms\":", "\"source_ms\":"] {
        assert!(holds(part), "{part} is nowhere");
    }
    // What proves that the search finds something: what was asked for.
    assert!(tells(&received.stdout, NAME.as_bytes()) && tells(&sent.stdout, NAME.as_bytes()));
    assert!(tells(&std::fs::read(&file).unwrap(), &PAYLOAD[..24]));
    let secrets = std::fs::read_to_string(&keys).unwrap();
    let secret = |line: &str| HEXLOWER.decode(line.rsplit(' ').next().unwrap().as_bytes()).unwrap();
    let logged: Vec<Vec<u8>> = secrets.lines().map(secret).collect();
    assert!(logged.len() >= 4 && tells(secrets.as_bytes(), &logged[0]), "{secrets}");

    let mut canaries = vec![
        ("the name of the file", NAME.as_bytes().to_vec()),
        ("payload", PAYLOAD[..24].to_vec()),
        ("the code", code.as_bytes().to_vec()),
        ("the sender's home", home_of_sender.as_bytes().to_vec()),
        ("the key of the receiver", key_bytes(Path::new(&home_of_receiver))),
    ];
    canaries.extend(logged.into_iter().map(|secret| ("a secret of the connection", secret)));
    for (what, canary) in &canaries {
        for (name, text) in &texts {
            assert!(!text.is_empty() && !tells(text, canary), "{name} is empty or tells {what}");
        }
    }
    // The lines of --stats among what is for people, and content that compresses badly.
    assert!(!tells(received.stderr.as_bytes(), &PAYLOAD[..24]) && !tells(&texts[0].1, &content(24)));
}
