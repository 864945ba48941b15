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
