//! Both blocking ends over the link emulator, with loss lists.

use crate::stop_and_wait::{StopAndWaitReceiver, StopAndWaitSender};
use segstream_base::Duration;
use segstream_net::adapter::{
    BlockingReceiver, Failure, ReceiveOptions, ReceiveReport, ReceivingConfig, SendOptions, SendReport, Timing, Watch, read_segments,
    send_blocking,
};
use segstream_net::link::{Link, LinkConfig};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const UNIT_BYTES: u32 = 1_000;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251 + at / 251) as u8).collect()
}

/// Sends `content` in segments of 10 units over a link of 4 ms round trip; what the sink got, and both reports.
fn transfer(content: Vec<u8>, tries: u32, forward_loss: &str, back_loss: &str) -> (Vec<u8>, ReceiveReport, SendReport) {
    let options =
        ReceiveOptions { receiving: ReceivingConfig { in_order: true, ..ReceivingConfig::default() }, ..ReceiveOptions::default() };
    let receiver = BlockingReceiver::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let mut config = LinkConfig::new("127.0.0.1:0".parse().unwrap(), receiver.local_addr());
    (config.forward.delay, config.back.delay) = (Duration::from_millis(2), Duration::from_millis(2));
    (config.forward.loss, config.back.loss) = (forward_loss.parse().unwrap(), back_loss.parse().unwrap());
    let link = Link::bind(&config).unwrap();
    let (address, stop) = (link.local_addr(), AtomicBool::new(false));
    thread::scope(|scope| {
        let relaying = scope.spawn(|| link.run(&stop));
        let receiving = scope.spawn(|| {
            let mut got = Vec::new();
            let mut progress = 0;
            let mut told = |so_far: segstream_net::adapter::Progress| progress = so_far.bytes;
            let report = receiver.run(
                |parameters| (parameters == "p").then(StopAndWaitReceiver::default).ok_or_else(|| "not p".to_owned()),
                |delivery| {
                    got.extend(delivery.zero_filled());
                    Ok(())
                },
                Watch { stop: None, progress: Some(&mut told) },
            );
            let report = report.unwrap();
            assert_eq!(progress, report.bytes);
            (got, report)
        });
        let half = StopAndWaitSender::new(UNIT_BYTES, tries, Duration::from_millis(100));
        let segments = read_segments(io::Cursor::new(content), 10 * UNIT_BYTES as usize);
        let sent = send_blocking(half, segments, address, "p", SendOptions::default(), Watch::default()).unwrap();
        let (got, received) = receiving.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        relaying.join().unwrap().unwrap();
        (got, received, sent)
    })
}

#[test]
fn a_listed_loss_is_repaired_and_the_content_is_the_same() {
    let content = content(45_500);
    let (got, received, sent) = transfer(content.clone(), u32::MAX, "list:0,3,17", "list:5");
    assert_eq!(got, content);
    assert!(sent.is_success() && received.is_success() && sent.confirmed, "{sent:?} {received:?}");
    assert_eq!((sent.segments, sent.verdicts.complete, received.verdicts.complete), (5, 5, 5));
    assert_eq!((sent.bytes, received.bytes, received.holes), (45_500, 45_500, 0));
    assert!(sent.packets_retransmitted >= 2 && sent.packets_sent == 46 + sent.packets_retransmitted, "{sent:?}");
    assert!(sent.rtt_ms_min.is_some_and(|rtt| rtt >= 4.0));
    assert!(sent.goodput_bps.is_some() && received.goodput_bps.is_some());
    assert_eq!(received.parameters.as_deref(), Some("p"));
    assert_eq!(received.gauges[0].value, 5.0);
}

#[test]
fn a_listed_loss_that_is_tolerated_is_a_hole_at_its_place() {
    // Datagram 0 is OPEN, 3 is unit 2 of the first segment; 13 is unit 1 of the second, whose first is behind END at 11.
    let mut content = content(20_000);
    let (got, received, sent) = transfer(content.clone(), 1, "list:3,13", "none");
    content[2_000..3_000].fill(0);
    content[11_000..12_000].fill(0);
    assert!(got == content, "holes at other places");
    assert_eq!((received.bytes, received.missing_bytes, received.holes), (18_000, 2_000, 2));
    assert_eq!((sent.verdicts.within_tolerance, sent.packets_retransmitted), (2, 0));
}

#[test]
fn nobody_who_listens_is_a_failure_and_no_error() {
    let timing = Timing { open_timeout: Duration::from_millis(300), ..Timing::default() };
    let options = SendOptions { timing, ..SendOptions::default() };
    let half = StopAndWaitSender::new(UNIT_BYTES, 1, Duration::from_millis(50));
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let report = send_blocking(half, [Ok(vec![1])].into_iter(), nobody.local_addr().unwrap(), "p", options, Watch::default()).unwrap();
    assert!(matches!(report.failure, Some(Failure::NotAnswered { .. })), "{report:?}");
    assert_eq!((report.segments, report.rtt_ms_min, report.goodput_bps), (0, None, None));
    assert!(!report.is_success());
}

#[test]
fn a_stop_ends_a_receiver_nobody_comes_to_and_both_ends_of_a_transfer() {
    let bind = || BlockingReceiver::bind("127.0.0.1:0".parse().unwrap(), ReceiveOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    let build = |_: &str| Ok(StopAndWaitReceiver::default());
    thread::scope(|scope| {
        let receiver = bind();
        let waker = receiver.waker();
        let waiting = scope.spawn(|| receiver.run(build, |_| Ok(()), Watch { stop: Some(&stop), progress: None }));
        stop.store(true, Ordering::Relaxed);
        waker.wake();
        assert_eq!(waiting.join().unwrap().unwrap().failure, Some(Failure::Interrupted));
    });
    stop.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        let receiver = bind();
        let address = receiver.local_addr();
        let receiving = scope.spawn(|| receiver.run(build, |_| Ok(()), Watch::default()));
        let endless = std::iter::repeat_with(|| Ok(vec![7; 5_000]));
        let mut enough = |progress: segstream_net::adapter::Progress| stop.store(progress.segments >= 20, Ordering::Relaxed);
        let half = StopAndWaitSender::new(UNIT_BYTES, 9, Duration::from_millis(50));
        let watch = Watch { stop: Some(&stop), progress: Some(&mut enough) };
        let sent = send_blocking(half, endless, address, "p", SendOptions::default(), watch).unwrap();
        assert_eq!(sent.failure, Some(Failure::Interrupted));
        assert!(sent.verdicts.complete >= 20 && sent.verdicts.unknown > 0);
        let received = receiving.join().unwrap().unwrap();
        assert!(matches!(received.failure, Some(Failure::EndedByPeer { .. })), "{received:?}");
    });
}

#[test]
fn a_source_or_a_sink_that_fails_ends_the_transfer_at_both_ends() {
    let run = |source_fails: bool| {
        let receiver = BlockingReceiver::bind("127.0.0.1:0".parse().unwrap(), ReceiveOptions::default()).unwrap();
        let address = receiver.local_addr();
        thread::scope(|scope| {
            let receiving = scope.spawn(move || {
                let sink = |_| if source_fails { Ok(()) } else { Err(io::Error::other("disk full")) };
                receiver.run(|_| Ok(StopAndWaitReceiver::default()), sink, Watch::default()).unwrap()
            });
            let failing =
                (0..100).map(move |number| if number == 3 && source_fails { Err(io::Error::other("gone")) } else { Ok(vec![7; 5_000]) });
            let half = StopAndWaitSender::new(UNIT_BYTES, 9, Duration::from_millis(50));
            let sent = send_blocking(half, failing, address, "p", SendOptions::default(), Watch::default()).unwrap();
            (sent.failure, receiving.join().unwrap().failure)
        })
    };
    let (sent, received) = run(true);
    assert_eq!(sent, Some(Failure::Source { cause: "gone".to_owned() }));
    assert!(matches!(received, Some(Failure::EndedByPeer { .. })));
    let (sent, received) = run(false);
    assert!(matches!(sent, Some(Failure::EndedByPeer { .. })));
    assert_eq!(received, Some(Failure::Sink { cause: "disk full".to_owned() }));
}
