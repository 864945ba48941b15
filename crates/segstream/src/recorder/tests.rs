//! A recorder that falls behind, many connections, and files that fail.

use super::*;
use segstream_base::{ShipmentNumber, StreamId};
use segstream_proto::trace::{Content, Shipments};
use segstream_wire::{Kind, Report, ReportFrame};
use std::path::Path;

const ORIGIN: Origin = Origin {
    serial: 3,
    role: Role::Initiator,
    remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9),
    epoch: Duration::ZERO,
};

fn batch(event: TraceEvent, ended: bool) -> Batch {
    Batch::new(ORIGIN, vec![Traced { at: Timestamp::ZERO, event }], ended)
}

/// A recorder whose thread takes nothing until something is sent: as a disk that stands.
fn stalled(folder: &Path, batches_max: usize) -> (Recorder, SyncSender<()>) {
    let (batches, received) = sync_channel(batches_max);
    let (go, held) = sync_channel::<()>(0);
    let (ends, waiting_bytes, omitted) = (Ends::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
    let queue =
        Queue { batches: received, late: Arc::clone(&ends), waiting_bytes: Arc::clone(&waiting_bytes), omitted: Arc::clone(&omitted) };
    let qlog = Qlog::in_folder(folder.to_owned(), OPEN_MAX).unwrap();
    let thread = std::thread::spawn(move || {
        held.recv().unwrap();
        queue.write(Some(qlog), None)
    });
    let shared = Shared { work: Mutex::new(Some(Work { batches, thread })), omitted, ends, waiting_bytes };
    (Recorder { shared: Arc::new(shared) }, go)
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("segstream-recorder-{}-{name}", std::process::id()))
}

#[test]
fn a_recorder_that_falls_behind_delays_nobody_and_its_file_tells_what_is_missing() {
    let folder = folder("behind");
    let (recorder, go) = stalled(&folder, 2);
    assert!(recorder.hand_over(batch(TraceEvent::Established, false)) && recorder.hand_over(batch(TraceEvent::Omitted(1), false)));
    // The queue is full, and nobody takes from it: these calls return all the same.
    assert!((0..5).all(|_| !recorder.hand_over(batch(TraceEvent::Established, false))));
    assert_eq!(recorder.events_omitted(), 5);
    recorder.hand_over_end(batch(TraceEvent::Omitted(5), true));
    go.send(()).unwrap();
    recorder.finish().unwrap();
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    let events: Vec<&str> = text.lines().skip(1).map(|line| line.split("\"name\":\"segstream:").nth(1).unwrap_or(line)).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(events.len(), 3, "{text}");
    assert!(text.lines().last().unwrap().contains("events_omitted") && text.lines().last().unwrap().contains("{\"count\":5}"), "{text}");
    assert_eq!(recorder.shared.waiting_bytes.load(Ordering::Relaxed), 0, "what was written waits no more");
}

#[test]
fn of_connections_that_come_and_go_while_the_disk_stands_nothing_is_kept() {
    let folder = folder("crowd");
    let (recorder, go) = stalled(&folder, 8);
    let mut recording = Recording::new(recorder.clone(), Duration::ZERO);
    for serial in 0..1000 {
        recording.record_of(serial, || Origin { serial, ..ORIGIN }, batch(TraceEvent::Established, false).events);
        recording.end(serial);
    }
    assert!(recording.connections.is_empty());
    let ends = recorder.shared.ends.lock().unwrap().len();
    assert!(ends <= 8, "{ends} ends of connections wait");
    go.send(()).unwrap();
    recorder.finish().unwrap();
    let files = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!((1..=8).contains(&files) && recorder.events_omitted() >= 992, "{files} files, {}", recorder.events_omitted());
}

#[test]
fn a_disk_that_stands_costs_a_bounded_memory_whatever_the_events_hold() {
    let folder = folder("stands");
    let (recorder, go) = stalled(&folder, BATCHES_MAX);
    // Reports as long as a hostile peer can make them: 2000 frames in one.
    let frame = ReportFrame::Complete { stream: StreamId(1), first: segstream_base::SegmentNumber(0), count: 1 };
    let report = Report { frames: (0..2000).map(|_| frame.clone()).collect(), ..Report::default() };
    let long = |number| {
        let content = Content::Report(Box::new(report.clone()));
        TraceEvent::Received(Shipments { kind: Kind::Report, first: ShipmentNumber(number), count: 1, bytes: 9000, content })
    };
    let accepted = (0..2 * BATCHES_MAX as u64).filter(|number| recorder.hand_over(batch(long(*number), false))).count();
    let waiting = recorder.shared.waiting_bytes.load(Ordering::Relaxed);
    let each = batch(long(0), false).memory_bytes;
    assert!(each > 2000 * size_of::<ReportFrame>() && accepted < BATCHES_MAX, "{accepted} batches of {each} bytes");
    assert!(waiting <= WAITING_BYTES_MAX && waiting + each > WAITING_BYTES_MAX, "{waiting} bytes wait");
    assert_eq!(recorder.events_omitted(), 2 * BATCHES_MAX as u64 - accepted as u64);
    go.send(()).unwrap();
    recorder.finish().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(recorder.shared.waiting_bytes.load(Ordering::Relaxed), 0);
}

/// A connection of this end with the number `serial`.
const fn origin(serial: u64) -> Origin {
    Origin { serial, ..ORIGIN }
}

/// `count` events that tell the numbers from `first` on.
fn numbered(serial: u64, first: u64, count: u64) -> Batch {
    let event = |number| TraceEvent::ShipmentsLost { first: ShipmentNumber(number), count: 1 };
    let events = (first..first + count).map(|number| Traced { at: Timestamp::ZERO, event: event(number) });
    Batch::new(origin(serial), events.collect(), false)
}

fn end(serial: u64) -> Batch {
    Batch::new(origin(serial), Vec::new(), true)
}

fn qlog_of(folder: &Path, serial: u64) -> PathBuf {
    folder.join(format!("0-{serial}-client.sqlog"))
}

/// The numbers that the qlog of a connection tells, which is whole.
fn told(folder: &Path, serial: u64) -> Vec<u64> {
    let text = std::fs::read_to_string(qlog_of(folder, serial)).unwrap();
    assert!(text.ends_with('\n') && text.lines().all(|line| line.starts_with('\u{1e}') && line.ends_with('}')), "{text}");
    let numbers = text.lines().skip(1).map(|line| line.split("\"first\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap());
    numbers.collect()
}

fn files_to(qlog: Qlog, loss_log: Option<LossLog>) -> Files {
    Files { qlog: Some(qlog), loss_log, failures: Failures::default() }
}

/// How many files of `folder` this process has open.
#[cfg(target_os = "linux")]
fn open_in(folder: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    open.filter(|path| path.starts_with(folder)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn of_many_connections_few_files_are_open_and_every_one_is_whole() {
    const CONNECTIONS: u64 = 100;
    const ROUNDS: u64 = 6;
    /// Events that do not fit what gathers in memory together.
    const EVENTS: u64 = 100;
    let folder = folder("open");
    let mut files = files_to(Qlog::in_folder(folder.clone(), 8).unwrap(), None);
    let mut open_max = 0;
    for round in 0..ROUNDS {
        for serial in 0..CONNECTIONS {
            assert_eq!(files.write(&numbered(serial, round * EVENTS, EVENTS)), 0);
            open_max = open_max.max(open_in(&folder));
        }
    }
    // Half of them end, the others are written when the recorder does.
    (0..CONNECTIONS / 2).for_each(|serial| assert_eq!(files.write(&end(serial)), 0));
    files.finish().into_result().unwrap();
    assert_eq!((open_max, open_in(&folder)), (8, 0));
    for serial in 0..CONNECTIONS {
        assert_eq!(told(&folder, serial), (0..ROUNDS * EVENTS).collect::<Vec<u64>>(), "connection {serial}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_qlog_that_fails_ends_alone_and_the_first_is_told_once() {
    let folder = folder("fails");
    let mut files = files_to(Qlog::in_folder(folder.clone(), 1).unwrap(), None);
    // The file of 1 is in the way of the one to be made, that of 2 is taken away while it is closed.
    std::fs::write(qlog_of(&folder, 1), "of somebody else").unwrap();
    let mut lost = 0;
    for round in 0..5 {
        for serial in 0..4 {
            lost += files.write(&numbered(serial, round * 200, 200));
        }
        if round == 1 {
            std::fs::remove_file(qlog_of(&folder, 2)).unwrap();
        }
    }
    (0..4).for_each(|serial| lost += files.write(&end(serial)));
    let error = files.finish().into_result().unwrap_err().to_string();
    assert!(error.starts_with(qlog_of(&folder, 1).to_str().unwrap()) && error.ends_with("other files that have failed: 1"), "{error}");
    assert_eq!(std::fs::read_to_string(qlog_of(&folder, 1)).unwrap(), "of somebody else");
    assert!(!qlog_of(&folder, 2).exists(), "a file that was taken away is not made again without its head");
    for serial in [0, 3] {
        assert_eq!(told(&folder, serial), (0..1000).collect::<Vec<u64>>());
    }
    // All of 1, and of 2 what came after its file was gone.
    assert!((1000 + 200..=1000 + 600).contains(&lost), "{lost} events are counted as lost");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_of_losses_on_a_full_disk_leaves_the_qlogs_alone() {
    let folder = folder("full");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let log = LossLog::over(PathBuf::from("/dev/full"), full);
    let mut files = files_to(Qlog::in_folder(folder.clone(), 1).unwrap(), Some(log));
    for round in 0..5 {
        assert_eq!(files.write(&numbered(0, round * 200, 200)), 0);
    }
    assert!(files.loss_log.is_none(), "nothing more is written to it");
    files.write(&end(0));
    let error = files.finish().into_result().unwrap_err();
    assert!(error.kind() == io::ErrorKind::StorageFull && error.to_string().starts_with("/dev/full: "), "{error}");
    assert!(!error.to_string().contains("other files"), "{error}");
    assert_eq!(told(&folder, 0), (0..1000).collect::<Vec<u64>>());
    std::fs::remove_dir_all(&folder).unwrap();
}
