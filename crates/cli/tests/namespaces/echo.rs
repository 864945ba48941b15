//! What goes there and back takes the round trip.

use crate::testbed::{Side, Testbed, testbed_between};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_echo_sees_the_round_trip() {
    for addresses in [["10.77.0.1", "10.77.0.2"], ["fd77::1", "fd77::2"]] {
        for millis in [1, 40] {
            let rtt = format!("{millis}ms");
            let Some(testbed) = testbed_between(addresses, &["--bandwidth", "100mbit", "--rtt", &rtt]) else { return };
            let seen = echoes(&testbed);
            let (least, round_trip) = (seen[0], Duration::from_millis(millis));
            // Why the least: the others also say how long the two programs had to wait for a processor.
            assert!(least >= round_trip && least < round_trip + Duration::from_millis(1), "{seen:?}");
            eprintln!("{rtt}: {:?} (least), {:?} (median)", least, seen[seen.len() / 2]);
            testbed.end();
        }
    }
}

/// The round trips of 100 datagrams, the shortest first.
fn echoes(testbed: &Testbed) -> Vec<Duration> {
    let [client, server] = [Side::A, Side::B].map(|side| testbed.udp(side));
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    client.connect(server.local_addr().unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while let Ok((1, from)) = server.recv_from(&mut buffer) {
                server.send_to(&buffer[..1], from).unwrap();
            }
        });
        let mut seen: Vec<Duration> = (0..100u8).map(|number| echo(&client, number)).collect();
        // The server ends with what is no echo.
        client.send(&[0; 2]).unwrap();
        seen.sort_unstable();
        seen
    })
}

fn echo(client: &UdpSocket, number: u8) -> Duration {
    let sent = Instant::now();
    client.send(&[number]).unwrap();
    let mut buffer = [0; 64];
    let length = client.recv(&mut buffer).unwrap();
    let seen = sent.elapsed();
    assert_eq!(&buffer[..length], &[number]);
    seen
}
