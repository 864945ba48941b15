//! The link says what it did.

use crate::process::link;
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn what_passes_is_counted_and_what_is_listed_is_lost() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let to = target.local_addr().unwrap().to_string();
    let (link, through) = link(&to, &["--bandwidth", "10mbit", "--rtt", "20ms", "--loss", "list:1", "--json"]);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..3u8 {
        client.send_to(&[number], &through).unwrap();
    }
    let mut buffer = [9; 4];
    let arrived = [0, 2].map(|_| {
        target.recv_from(&mut buffer).unwrap();
        buffer[0]
    });
    assert_eq!(arrived, [0, 2]);
    let ended = link.interrupt();
    let report = ended.json();
    assert_eq!(report["forward"]["packets_entered"], 3);
    assert_eq!(report["forward"]["packets_lost"], 1);
    assert_eq!(report["forward"]["datagrams_sent"], 2);
    // On a busy machine the link may be late, and then says so.
    assert_eq!(ended.code, Some(if report["kept_up"].as_bool().unwrap() { 0 } else { 1 }));
}

#[test]
fn a_managed_queue_and_a_policer_are_told_apart_in_the_report() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let to = target.local_addr().unwrap().to_string();
    // A datagram of 972 bytes is a packet of 1000. Ten pass the policer, and hardly any more.
    let (link, through) = link(
        &to,
        &[
            "--bandwidth",
            "0s:1mbit,1s:2mbit,repeat=2s",
            "--rtt",
            "20ms",
            "--aqm",
            "codel:target=5ms,interval=50ms",
            "--mark-above",
            "1ms",
            "--policer",
            "1kbit,10000B",
            "--json",
        ],
    );
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..20 {
        client.send_to(&[7; 972], &through).unwrap();
    }
    let mut buffer = [0; 1500];
    // CoDel lets the first of the ten pass in any case; seven of them take 50 ms or longer.
    let first = target.recv_from(&mut buffer).unwrap().0;
    assert_eq!(first, 972);
    std::thread::sleep(Duration::from_millis(500));
    let ended = link.interrupt();
    let report = ended.json();
    let count = |name: &str| report["forward"][name].as_u64().unwrap_or_else(|| panic!("{name}"));
    assert_eq!((count("packets_entered"), count("packets_dropped_policer"), count("packets_marked")), (20, 10, 0));
    assert_eq!(count("datagrams_sent") + count("datagrams_unsent") + count("packets_dropped_aqm"), 10);
    let wait = |name: &str| report["forward"][name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!(0.0 < wait("queueing_ms_mean") && wait("queueing_ms_mean") <= wait("queueing_ms_p95"));
    assert!(wait("queueing_ms_p95") <= wait("queueing_ms_max"));
    assert_eq!(report["back"]["queueing_ms_max"], 0.0);
}

#[test]
fn a_recorded_link_lets_a_datagram_out_at_its_opportunity() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let to = target.local_addr().unwrap().to_string();
    let trace = tempfile::NamedTempFile::new().unwrap();
    // 12 Mbit/s, but for a pause of 300 ms.
    let lines: String = (1..=100).chain(400..=500).map(|millis| format!("{millis}\n")).collect();
    std::fs::write(trace.path(), lines).unwrap();
    let path = trace.path().to_str().unwrap();
    let flags = ["--trace", path, "--rtt", "20ms", "--jitter", "wifi:1ms", "--jitter-back", "none", "--aqm", "fq-codel", "--json"];
    let (link, through) = link(&to, &flags);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..60 {
        client.send_to(&[7; 1000], &through).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut buffer = [0; 1500];
    for _ in 0..60 {
        assert_eq!(target.recv_from(&mut buffer).unwrap().0, 1000);
    }
    let report = link.interrupt().json();
    assert_eq!((report["forward"]["packets_entered"].as_u64(), report["forward"]["datagrams_sent"].as_u64()), (Some(60), Some(60)));
    // 600 ms meet a pause at least once: whoever came at its beginning waited for all of it, or nearly so.
    assert!(report["forward"]["queueing_ms_max"].as_f64().unwrap() > 100.0, "{report}");
}
