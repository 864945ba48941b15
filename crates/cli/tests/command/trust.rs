//! Whom each end trusts, and what it says to those it does not.

use crate::process::{Ended, Running, identity, run, start_at, start_with_variables};
use segstream::{Fingerprint, Identity};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Two users with a configuration directory each, and a file to send.
struct Users {
    directory: TempDir,
}

impl Users {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for user in ["sender", "receiver"] {
            fs::create_dir(directory.path().join(user)).unwrap();
        }
        fs::write(directory.path().join("file"), b"between two users").unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn identity(&self, user: &str) -> Identity {
        Identity::load_or_create(&self.path(user).join("segstream/identity.pem")).unwrap()
    }

    /// Starts `recv`; where it listens.
    fn receiver(&self, more: &[&str]) -> (Running, String) {
        let mut running = start_at(&self.path("receiver"), ["recv", "--listen", "127.0.0.1:0"].iter().chain(more));
        let address = running.listening().to_string();
        (running, address)
    }

    fn send(&self, address: &str, more: &[&str]) -> Ended {
        let file = self.path("file");
        start_at(&self.path("sender"), ["send", address, file.to_str().unwrap()].iter().chain(more)).end()
    }

    /// Runs a command line that was printed for people, but for the name of the binary.
    fn paste(&self, line: &str) -> Ended {
        let file = self.path("file");
        let words = line.split(' ').map(|word| if word == "PATH" { file.to_str().unwrap() } else { word });
        let (variables, words): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("SEGSTREAM_CODE="));
        start_with_variables(&self.path("sender"), &variables, &words[1..]).end()
    }
}

/// The next command line that `recv` prints for its senders.
fn invitation(receiver: &mut Running) -> String {
    loop {
        if let Some(line) = receiver.line().strip_prefix("to send: ") {
            return line.to_owned();
        }
    }
}

/// What stands behind `flag` on a command line.
fn value<'a>(line: &'a str, flag: &str) -> &'a str {
    line.split(' ').skip_while(|word| *word != flag).nth(1).unwrap_or_else(|| panic!("no {flag}: {line}"))
}

/// The one-time code in a command line.
fn code_in(line: &str) -> &str {
    line.split(' ').find_map(|word| word.strip_prefix("SEGSTREAM_CODE=")).unwrap_or_else(|| panic!("no code: {line}"))
}

fn all_in(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "\"{part}\" is not in {text}");
    }
}

#[test]
fn the_command_that_recv_prints_works_as_it_is() {
    let users = Users::new();
    let target = users.path("target");
    let (mut receiver, address) = users.receiver(&["--out", target.to_str().unwrap(), "--json"]);
    let made = receiver.line();
    all_in(&made, &["a new identity was made in", "receiver/segstream/identity.pem: SHA256:"]);
    let key = users.identity("receiver").fingerprint().to_string();
    assert_eq!(receiver.line(), format!("fingerprint {key}"));
    let line = invitation(&mut receiver);
    all_in(&line, &["segstream send ", &address, " PATH --peer ", &key, " --code"]);
    let sent = users.paste(&format!("{line} --json")).expect(0);
    let received = receiver.end().expect(0);
    assert_eq!(fs::read(&target).unwrap(), b"between two users");
    let code = code_in(&line).parse().unwrap();
    let sender = Identity::of_code(&code).unwrap().fingerprint().to_string();
    assert_eq!((&sent.json()["peer"], &received.json()["peer"]), (&key.into(), &sender.clone().into()));
    assert_eq!(sent.json()["address"], address);
    all_in(&received.stderr, &[&sender]);
    assert!(!users.path("sender/segstream/identity.pem").exists(), "a code needs no identity");
}

#[test]
fn a_code_makes_both_ends_remember_each_other() {
    let users = Users::new();
    let target = users.path("first");
    let (mut receiver, _) = users.receiver(&["--out", target.to_str().unwrap(), "--pair", "studio"]);
    let line = invitation(&mut receiver);
    assert!(line.ends_with(" --code --pair"), "{line}");
    let sent = users.paste(&line).expect(0);
    all_in(&sent.stderr, &["the receiver remembers this user's key as studio", "is stored in"]);
    let own = users.identity("sender").fingerprint().to_string();
    all_in(&receiver.end().expect(0).stderr, &["the sender is remembered as studio", &own]);
    assert_eq!(fs::read_to_string(users.path("receiver/segstream/known_senders")).unwrap(), format!("studio {own}\n"));
    let listed = start_at(&users.path("receiver"), ["identity"]).end().expect(0);
    all_in(&String::from_utf8_lossy(&listed.stdout), &[&format!("sender studio {own}")]);
    // From then on neither a code nor, for the address it knows, a fingerprint.
    let key = users.identity("receiver").fingerprint().to_string();
    let (receiver, address) = users.receiver(&["--out", users.path("second").to_str().unwrap(), "--known"]);
    users.send(&address, &["--peer", &key]).expect(0);
    receiver.end().expect(0);
    assert_eq!(fs::read(users.path("second")).unwrap(), b"between two users");
    start_at(&users.path("receiver"), ["identity", "forget", "studio"]).end().expect(0);
    let refused = start_at(&users.path("receiver"), ["recv", "--listen", "127.0.0.1:0", "--known"]).end().expect(1);
    all_in(&refused.stderr, &["no sender is remembered"]);
}

#[test]
fn a_sender_that_only_has_a_code_is_not_remembered_unless_both_say_so() {
    let users = Users::new();
    let (mut receiver, _) = users.receiver(&["--out", users.path("target").to_str().unwrap()]);
    let line = invitation(&mut receiver);
    users.paste(&format!("{line} --pair")).expect(0);
    all_in(&receiver.end().expect(0).stderr, &["start recv with --pair NAME"]);
    assert!(!users.path("receiver/segstream/known_senders").exists());
    let refused = users.send("127.0.0.1:9", &["--pair"]).expect(2);
    all_in(&refused.stderr, &["--pair needs a one-time code"]);
}

#[test]
fn an_unknown_receiver_is_refused_accepted_with_the_command_shown_and_known_from_then_on() {
    let users = Users::new();
    let ours = users.identity("sender").fingerprint().to_string();
    let (receiver, address) = users.receiver(&["--keep", "--allow", &ours]);
    let key = users.identity("receiver").fingerprint().to_string();
    let refused = users.send(&address, &[]).expect(1);
    all_in(&refused.stderr, &["is not known yet", &key, "Compare that with the fingerprint that recv prints", "accept the key: "]);
    let (_, command) = refused.stderr.lines().last().unwrap().split_once("accept the key: ").unwrap();
    let accepted = users.paste(command).expect(0);
    let known_peers = users.path("sender/segstream/known_peers");
    all_in(&accepted.stderr, &["is stored in", known_peers.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&known_peers).unwrap(), format!("{address} {key}\n"));
    users.send(&address, &[]).expect(0);
    let again = users.send(&address, &["--peer", &key]).expect(0);
    assert!(!again.stderr.contains("stored"), "{again:?}");
    receiver.interrupt().expect(0);
}

#[test]
fn a_wrong_fingerprint_is_refused_with_both() {
    let users = Users::new();
    let (mut receiver, address) = users.receiver(&[]);
    let line = invitation(&mut receiver);
    let (right, wrong) = (value(&line, "--peer"), Fingerprint([7; 32]).to_string());
    let code = users.path("code");
    fs::write(&code, code_in(&line)).unwrap();
    let refused = users.send(&address, &["--peer", &wrong, "--code-file", text(&code), "--json"]).expect(1);
    all_in(refused.json()["error"].as_str().unwrap(), &[right, &wrong, "--peer says", "another program answers"]);
    // Nobody has used the code up.
    users.paste(&line).expect(0);
    receiver.end().expect(0);
}

#[test]
fn a_changed_key_is_refused_with_both_and_the_line_to_edit() {
    let users = Users::new();
    let ours = users.identity("sender").fingerprint().to_string();
    let (receiver, address) = users.receiver(&["--keep", "--allow", &ours]);
    let (key, before) = (users.identity("receiver").fingerprint().to_string(), Fingerprint([7; 32]).to_string());
    let file = users.path("met");
    let line = format!("# ours\n{address} {before}\n");
    fs::write(&file, &line).unwrap();
    let known_peers = ["--known-peers", file.to_str().unwrap()];
    let refused = users.send(&address, &known_peers).expect(1);
    let place = format!("{} line 2", file.display());
    all_in(&refused.stderr, &["has changed", &key, &before, &place, "remove line 2"]);
    let sent = users.send(&address, &[&known_peers[..], &["--peer", &key]].concat()).expect(0);
    all_in(&sent.stderr, &[&place, "has another key", &before]);
    assert_eq!(fs::read_to_string(&file).unwrap(), line, "nobody but its owner changes a known key");
    receiver.interrupt().expect(0);
}

#[test]
fn a_code_works_once_and_with_keep_another_follows() {
    let users = Users::new();
    let (mut receiver, _) = users.receiver(&["--keep"]);
    let first = invitation(&mut receiver);
    let wrong = first.replace(code_in(&first), "0000-0000-0000-0000");
    let refused = users.paste(&wrong).expect(1);
    all_in(&refused.stderr, &["refuses the one-time code", "mistyped or was used before"]);
    users.paste(&first).expect(0);
    let second = invitation(&mut receiver);
    assert_ne!(first, second);
    let refused = users.paste(&first).expect(1);
    all_in(&refused.stderr, &["refuses the one-time code"]);
    users.paste(&second).expect(0);
    receiver.interrupt().expect(0);
}

#[test]
fn a_key_that_is_not_allowed_is_refused_with_what_to_do() {
    let users = Users::new();
    let (receiver, address) = users.receiver(&["--allow", &Fingerprint([7; 32]).to_string()]);
    let (key, ours) = (users.identity("receiver").fingerprint().to_string(), users.identity("sender").fingerprint().to_string());
    let refused = users.send(&address, &["--peer", &key]).expect(1);
    all_in(&refused.stderr, &["does not allow the key", &format!("--allow {ours}")]);
    // Whoever is refused is no transfer: the receiver still waits for its own.
    receiver.interrupt().expect(1);
}

#[test]
fn anyone_is_served_where_anyone_is_allowed() {
    let users = Users::new();
    let (receiver, address) = users.receiver(&["--allow-anyone"]);
    let key = users.identity("receiver").fingerprint().to_string();
    let sent = users.send(&address, &["--peer", &key]).expect(0);
    all_in(&sent.stderr, &["a new identity was made in"]);
    let received = receiver.end().expect(0);
    all_in(&received.stderr, &[&users.identity("sender").fingerprint().to_string()]);
}

#[test]
fn another_identity_has_its_known_receivers_beside_it() {
    let users = Users::new();
    let other = users.path("service/key.pem");
    let ours = Identity::load_or_create(&other).unwrap().fingerprint().to_string();
    let (receiver, address) = users.receiver(&["--allow", &ours, "--keep"]);
    let key = users.identity("receiver").fingerprint().to_string();
    users.send(&address, &["--identity", text(&other), "--peer", &key]).expect(0);
    users.send(&address, &["--identity", text(&other)]).expect(0);
    assert!(users.path("service/known_peers").exists() && !users.path("sender/segstream").exists());
    receiver.interrupt().expect(0);
}

#[test]
fn encryption_at_one_end_alone_is_refused_with_what_to_do() {
    let users = Users::new();
    let (receiver, address) = users.receiver(&["--insecure"]);
    let refused = users.send(&address, &["--peer", &Fingerprint([7; 32]).to_string()]).expect(1);
    all_in(&refused.stderr, &["was started with --insecure and this sender encrypts", "at both ends or at neither"]);
    let sent = users.send(&address, &["--insecure", "--json"]).expect(0);
    all_in(&sent.stderr, &["insecure: no encryption and no authentication; anyone on the path can read and change"]);
    assert!(sent.json()["peer"].is_null() && sent.json()["address"] == address);
    all_in(&receiver.end().expect(0).stderr, &["insecure: no encryption"]);

    let (receiver, address) = users.receiver(&["--allow-anyone"]);
    let refused = users.send(&address, &["--insecure"]).expect(1);
    all_in(&refused.stderr, &["encrypts and this sender was started with --insecure", "at both ends or at neither"]);
    receiver.interrupt().expect(1);
}

/// Writes a root certificate, and one for `user` and `host` under it; their files.
fn certify(users: &Users, user: &str, host: &str) -> (PathBuf, PathBuf) {
    let root_key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let mut root = rcgen::CertificateParams::default();
    root.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let roots = users.path(&format!("roots of {user}.pem"));
    fs::write(&roots, root.self_signed(&root_key).unwrap().pem()).unwrap();
    users.identity(user);
    let key = fs::read_to_string(users.path(user).join("segstream/identity.pem")).unwrap();
    let key = rcgen::KeyPair::from_pem(&key).unwrap();
    let issuer = rcgen::Issuer::new(root, root_key);
    let certificate = rcgen::CertificateParams::new([host.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let file = users.path(&format!("certificate of {user}.pem"));
    fs::write(&file, certificate.pem()).unwrap();
    (roots, file)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_receiver_is_taken_for_its_certificate_and_serves_those_who_have_one() {
    let users = Users::new();
    let (roots, certificate) = certify(&users, "receiver", "127.0.0.1");
    let (roots_of_senders, certificate_of_sender) = certify(&users, "sender", "attic.example");
    let flags = ["--keep", "--certificate", text(&certificate), "--authority", text(&roots_of_senders)];
    let (receiver, address) = users.receiver(&flags);
    users.send(&address, &["--authority", text(&roots), "--certificate", text(&certificate_of_sender)]).expect(0);
    let refused = users.send(&address, &["--authority", text(&roots)]).expect(1);
    all_in(&refused.stderr, &["does not allow the key"]);
    let refused = users.send(&address, &["--authority", text(&roots_of_senders), "--certificate", text(&certificate_of_sender)]).expect(1);
    all_in(&refused.stderr, &["is not signed by an authority in the file of --authority", "with --peer"]);
    let port = address.rsplit_once(':').unwrap().1;
    let refused = users.send(&format!("localhost:{port}"), &["--authority", text(&roots)]).expect(1);
    all_in(&refused.stderr, &[&format!("at localhost:{port} is not signed by an authority")]);
    assert!(!users.path("sender/segstream/known_peers").exists());
    receiver.interrupt().expect(0);
}

#[test]
fn without_a_place_for_keys_the_way_out_is_named() {
    let users = Users::new();
    fs::write(users.path("sender/segstream"), "a file where the directory should be").unwrap();
    let refused = users.send("127.0.0.1:9", &[]).expect(1);
    all_in(&refused.stderr, &["sender/segstream"]);
    let shown = run(["recv", "--listen", "127.0.0.1:0", "--identity", text(&users.path("file"))]).expect(1);
    all_in(&shown.stderr, &["file"]);
    assert!(!shown.stderr.contains(&identity().fingerprint().to_string()));
}

#[test]
fn a_code_comes_from_a_file_or_from_whoever_is_asked_and_never_from_the_command_line() {
    let users = Users::new();
    let (mut receiver, address) = users.receiver(&["--keep"]);
    let line = invitation(&mut receiver);
    let key = value(&line, "--peer").to_owned();
    let refused = users.send(&address, &["--peer", &key, "--code", code_in(&line)]).expect(2);
    all_in(&refused.stderr, &["the one-time code is no argument", "SEGSTREAM_CODE"]);
    assert!(!refused.stderr.contains(code_in(&line)), "{}", refused.stderr);
    let code = users.path("code");
    fs::write(&code, format!("{}\n", code_in(&line))).unwrap();
    users.send(&address, &["--peer", &key, "--code-file", text(&code)]).expect(0);
    let line = invitation(&mut receiver);
    let file = users.path("file");
    let mut asked = start_at(&users.path("sender"), ["send", &address, text(&file), "--peer", &key, "--code"]);
    asked.input(format!("{}\n", code_in(&line).to_uppercase()).as_bytes());
    asked.end_input();
    all_in(&asked.end().expect(0).stderr, &["one-time code: "]);
    let refused = start_at(&users.path("sender"), ["send", &address, "-", "--peer", &key, "--code"]).end().expect(2);
    all_in(&refused.stderr, &["standard input is sent"]);
    receiver.interrupt().expect(0);
}

#[test]
fn identity_shows_ours_and_the_known_ones_and_forgets_one() {
    let users = Users::new();
    let identity = |more: &[&str]| start_at(&users.path("sender"), ["identity"].iter().chain(more)).end();
    let made = identity(&["--json"]).expect(0).json();
    let ours = users.identity("sender").fingerprint().to_string();
    assert_eq!((&made["fingerprint"], &made["made"]), (&ours.as_str().into(), &true.into()));
    let (key, other) = (Fingerprint([7; 32]).to_string(), Fingerprint([8; 32]).to_string());
    fs::write(users.path("sender/segstream/known_peers"), format!("a:1 {key}\n# b\nb:1 {other}\n")).unwrap();
    let shown = identity(&[]).expect(0);
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), format!("{ours}\na:1 {key}\nb:1 {other}\n"));
    all_in(&identity(&["forget", "c:1"]).expect(2).stderr, &["c:1 is not known", "a:1, b:1"]);
    all_in(&identity(&["forget", "a:1"]).expect(0).stderr, &[&key, "is forgotten"]);
    assert_eq!(fs::read_to_string(users.path("sender/segstream/known_peers")).unwrap(), format!("# b\nb:1 {other}\n"));
}
