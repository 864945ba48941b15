//! Every packet is accounted for, and the kernel's own counters agree.

use crate::testbed::{Side, testbed};
use rustix::process::Signal;
use std::thread;
use std::time::Duration;

#[test]
fn every_packet_of_a_burst_is_lost_dropped_or_delivered() {
    // 1000 bytes and two headers take 8 ms; two of them fit the queue.
    let flags = ["--bandwidth", "1mbit", "--rtt", "10ms", "--queue", "2056", "--loss", "list:3,5,60"];
    let Some(testbed) = testbed(&flags) else { return };
    let (mut seen, burst) = (Vec::new(), 50);
    let [client, server] = [Side::A, Side::B].map(|side| testbed.udp(side));
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    for number in 0..burst {
        client.send_to(&[number; 1000], server.local_addr().unwrap()).unwrap();
    }
    let mut buffer = [0; 2000];
    while let Ok((length, _)) = server.recv_from(&mut buffer) {
        assert_eq!(length, 1000);
        seen.push(buffer[0]);
    }
    let received = testbed.counter(Side::B, "Udp", "InDatagrams");
    let forward = testbed.end().json()["forward"].clone();
    let count = |name: &str| forward[name].as_u64().unwrap();
    // Nothing but what was sent crosses the path, so the listed packets are those that were lost.
    assert_eq!((count("packets_entered"), count("packets_lost")), (u64::from(burst), 2));
    assert!(!seen.contains(&3) && !seen.contains(&5) && seen.starts_with(&[0]), "{seen:?}");
    assert!(count("packets_dropped_queue") > 0);
    assert_eq!(u64::from(burst), count("packets_lost") + count("packets_dropped_queue") + seen.len() as u64);
    assert_eq!((count("datagrams_sent"), received), (seen.len() as u64, seen.len() as u64));
}

#[test]
fn what_the_kernel_drops_because_the_link_is_asleep_is_told() {
    let Some(testbed) = testbed(&["--bandwidth", "1gbit", "--rtt", "2ms", "--queue", "64MiB"]) else { return };
    let [client, server] = [Side::A, Side::B].map(|side| testbed.udp(side));
    let (to, sent) = (server.local_addr().unwrap(), 12_000);
    testbed.signal(Signal::STOP);
    for _ in 0..sent {
        client.send_to(&[1; 10], to).unwrap();
    }
    testbed.signal(Signal::CONT);
    // Until nothing more arrives.
    let arrived = || testbed.counter(Side::B, "Ip", "InReceives");
    let mut before = 0;
    while before == 0 || before < arrived() {
        before = arrived();
        thread::sleep(Duration::from_millis(500));
    }
    let report = testbed.end().json();
    let (entered, dropped) = (&report["forward"]["packets_entered"], &report["datagrams_dropped_receive_buffer"]);
    assert_eq!(entered.as_u64().unwrap() + dropped.as_u64().unwrap(), sent, "{report}");
    assert!(dropped.as_u64().unwrap() > 0 && report["kept_up"] == false, "{report}");
}
