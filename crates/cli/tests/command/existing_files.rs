//! What exists is not overwritten, and the sender learns of it.

use crate::process::{content, receiver, run, send};

#[test]
fn an_existing_file_stays_and_the_sender_fails_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("there"), b"old").unwrap();
    for name in ["there", "fresh"] {
        std::fs::write(directory.path().join(name), content(600_000)).unwrap();
    }
    let (receiver, address) = receiver(&["--out", out.to_str().unwrap(), "--json"]);
    let paths = ["there", "fresh"].map(|name| directory.path().join(name).to_str().unwrap().to_owned());
    let sent = send([&address, &paths[0], &paths[1], "--json"]).expect(1);
    let received = receiver.end().expect(1).json();

    assert_eq!(std::fs::read(out.join("there")).unwrap(), b"old");
    assert_eq!(std::fs::read(out.join("fresh")).unwrap(), content(600_000), "the other file is unharmed");
    assert!(sent.stderr.contains("there exists at the receiver and is not overwritten"), "{sent:?}");
    for report in [sent.json(), received] {
        assert!(report["files"][0]["error"].as_str().unwrap().contains("exists"), "{report}");
        assert!(report["files"][1]["error"].is_null(), "{report}");
    }
}

#[test]
fn an_existing_path_is_refused_before_anybody_is_listened_for() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"old").unwrap();
    let ended = run(["recv", "--listen", "127.0.0.1:0", "--out", file.path().to_str().unwrap()]).expect(1);
    assert!(ended.stderr.contains("exists and is not overwritten"), "{ended:?}");
    assert_eq!(std::fs::read(file.path()).unwrap(), b"old");
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    let ended = run(["recv", "--listen", "127.0.0.1:0", "--out", link.to_str().unwrap()]).expect(1);
    assert!(ended.stderr.contains("exists"), "{ended:?}");
    assert_eq!(std::fs::read(file.path()).unwrap(), b"old");
}

#[test]
fn a_device_or_a_fifo_is_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let (source, fifo) = (directory.path().join("source"), directory.path().join("fifo"));
    std::fs::write(&source, content(300_000)).unwrap();
    let source = source.to_str().unwrap();

    let (to_null, address) = receiver(&["--out", "/dev/null"]);
    send([&address, source]).expect(0);
    to_null.end().expect(0);

    let (to_full, address) = receiver(&["--out", "/dev/full"]);
    let sent = send([&address, source]).expect(1);
    assert!(sent.stderr.contains("the receiver could not keep the file: the device or FIFO of the receiver"), "{sent:?}");
    assert!(!sent.stderr.contains("/dev/full"), "the receiver's path is told: {sent:?}");
    to_full.end().expect(1);

    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read(fifo).unwrap()
    });
    let (to_fifo, address) = receiver(&["--out", fifo.to_str().unwrap()]);
    send([&address, source]).expect(0);
    to_fifo.end().expect(0);
    assert_eq!(reader.join().unwrap(), content(300_000));
    assert!(fifo.exists() && !directory.path().join("fifo.part").exists());
}

#[test]
fn a_directory_that_does_not_exist_is_not_taken_for_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let out = format!("{}/received/", directory.path().display());
    let ended = run(["recv", "--listen", "127.0.0.1:0", "--out", &out]).expect(1);
    assert!(ended.stderr.contains("does not exist; make it first"), "{ended:?}");
}

#[test]
fn a_path_takes_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| {
        let path = directory.path().join(name);
        std::fs::write(&path, name).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let target = directory.path().join("target");
    let (receiver, address) = receiver(&["--out", target.to_str().unwrap()]);
    let sent = send([&address, &paths[0], &paths[1]]).expect(1);
    assert!(sent.stderr.contains("names a single file"), "{sent:?}");
    receiver.end().expect(1);
    assert_eq!(std::fs::read(&target).unwrap(), b"a");
}
