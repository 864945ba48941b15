//! `segstream sim`: its numbers, its object, its taps, and what it refuses.

use crate::process::run;
use serde_json::Value;

const KEYS: &[&str] = &[
    "scheme",
    "throughput_efficiency",
    "goodput_bps",
    "throughput_packets_per_second",
    "delay_ms_mean",
    "delay_ms_p99",
    "delay_ms_max",
    "packets_sent",
    "packets_retransmitted",
    "spurious_retransmissions",
    "packets_delivered",
    "segments_delivered",
    "feedback_packets",
    "simulated_seconds",
    "wall_seconds",
    "packets_per_second",
];

fn object(line: &str) -> Value {
    let ended = run(line.split(' '));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn every_scheme_prints_every_key() {
    for scheme in ["segstream", "sstp", "snr"] {
        let one = object(&format!("sim {scheme} --loss 1e-3 --packets 100000 --json"));
        for key in KEYS {
            assert!(!one[key].is_null(), "{scheme} has no {key}: {one}");
        }
        assert_eq!(one["scheme"], scheme);
        // 390 whole segments of 256 packets.
        assert_eq!((&one["segments_delivered"], &one["packets_delivered"]), (&390.into(), &99_840.into()));
        assert_eq!(one["packets_sent"].as_u64().unwrap() - one["packets_retransmitted"].as_u64().unwrap(), 99_840);
        let efficiency = one["throughput_efficiency"].as_f64().unwrap();
        assert!(efficiency > 0.7 && efficiency < 1.001, "{scheme}: {efficiency}");
    }
}

#[test]
fn schemes_that_their_processors_limit_are_measured_in_its_packets() {
    let flags = "--rtt 20ms --service-us 83 --window 256 --sync-period 5ms --offset 0 --ranges all --loss 1e-3 --control-loss 0 \
                 --search fifo --search-us 1.1 --timer-us 0.5,0 --backoff own --packets 100000 --seed 1 --json";
    for (scheme, low, high) in [("htpnet", 0.82, 0.86), ("tcp", 0.6, 0.85)] {
        let line = format!("sim {scheme} {flags}");
        let one = object(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        for key in KEYS {
            assert!(!one[key].is_null(), "{scheme} has no {key}: {one}");
        }
        let efficiency = one["throughput_efficiency"].as_f64().unwrap();
        assert!((low..high).contains(&efficiency), "{scheme}: {efficiency}");
        let rate = one["throughput_packets_per_second"].as_f64().unwrap();
        assert!((rate * 83e-6 / efficiency - 1.0).abs() < 1e-9, "{scheme}: the packet time is the service");
        assert_eq!(one["spurious_retransmissions"].as_u64().unwrap() > 0, scheme == "tcp", "{one}");
    }
    for (words, told) in [
        ("sstp --service-us 83", "sstp does not use --service-us"),
        ("tcp --timer-us 5", "not what a timer costs"),
        ("htpnet --ranges 5", "write 4, 8, rotate or all"),
        ("htpnet --class 4 --ptif", "congestion avoidance spaces packets"),
    ] {
        let ended = run(format!("sim {words}").split(' '));
        assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
        assert!(format!("{ended:?}").contains(told), "{words}: {ended:?}");
    }
}

#[test]
fn bursts_leave_as_often_and_as_long_as_they_are_told_to() {
    for scheme in ["sstp", "segstream"] {
        let one = object(&format!("sim {scheme} --burst 100,256 --packets 100000 --json"));
        // F L = 25,600 packets a second, less what the last segment saves: it takes 4 ms of its 10.
        let rate = one["throughput_packets_per_second"].as_f64().unwrap();
        assert!((25_500.0..25_700.0).contains(&rate), "{scheme}: {rate}");
        assert!((rate / 25_600.0 - one["throughput_efficiency"].as_f64().unwrap()).abs() < 1e-9, "{one}");
    }
    for (words, told) in [
        ("htpnet --burst 100,256", "htpnet does not use --burst"),
        ("sstp --burst 239,256", "above the peak of 500"),
        ("sstp --burst 0,256", "F = 0 bursts per second"),
        ("sstp --burst 100", "is not F,L"),
    ] {
        let ended = run(format!("sim {words}").split(' '));
        assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
        assert!(ended.stderr.contains(told), "{words}: {ended:?}");
    }
}

#[test]
fn schemes_of_an_atm_cluster_run_in_its_setting_and_in_no_other_by_accident() {
    // A second of 8,251 packets, nothing lost: the work of an answer in every period, and of a poll and its answer.
    for (scheme, flags, low, high) in [
        ("adaptive-ack", "--window 400 --t-normal 40ms --t-error 5ms", 0.997, 0.9985),
        ("adaptive-ack", "--t-normal 5ms", 0.985, 0.986),
        ("adaptive-ack", "--t-normal 80ms", 0.6, 0.62),
        ("sscop", "--window 400 --timer-poll 40ms", 0.994, 0.998),
        ("sscop", "--timer-poll 10ms", 0.98, 0.99),
        ("segstream", "--rtt 0s --bandwidth 100mbit --bandwidth-back 10mbit --work-us 70,0.05 --window 400 --segment-packets 1", 0.5, 1.01),
    ] {
        let one = object(&format!("sim {scheme} {flags} --packets 50000 --seed 1 --json"));
        for key in KEYS.iter().chain(&["control_packets"]) {
            assert!(!one[key].is_null(), "{scheme} has no {key}: {one}");
        }
        let efficiency = one["throughput_efficiency"].as_f64().unwrap();
        assert!((low..high).contains(&efficiency), "{scheme} {flags}: {efficiency}");
        let rate = one["throughput_packets_per_second"].as_f64().unwrap();
        assert!((rate * 121.2e-6 / efficiency - 1.0).abs() < 1e-9, "{scheme}: the packet time is the work");
    }
    for (words, told) in [
        ("sscop --segment-packets 2", "segments of 2 packets are not possible with sscop"),
        ("tcp --t-normal 5ms", "tcp does not use --t-normal"),
        ("adaptive-ack --max-pd 25", "adaptive-ack does not use --max-pd"),
        ("sscop --no-tail-rule", "sscop does not use --no-tail-rule"),
        ("sscop --timer-poll 1us", "a poll every 1µs is not possible"),
        ("sstp --work-us 70", "write what a packet costs and what each byte does"),
        ("tcp --work-us 70,0.05 --service-us 83", "give either what both ends work"),
    ] {
        let ended = run(format!("sim {words}").split(' '));
        assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
        assert!(ended.stderr.contains(told), "{words}: {ended:?}");
    }
}

const TANDEM: &str = "--user-rate 0.12 --external-rate 0.1 --window 60 --link1-room 13 --wtimer 200 --slots 200000 --seed 1 --json";

#[test]
fn xtp_runs_over_a_tandem_of_queues() {
    for sender in ["gbn", "sr", "handshake", "handshake-gbn"] {
        for receiver in ["discard", "store-conservative", "store-aggressive"] {
            for arrivals in ["bernoulli", "ibp:c2=10"] {
                let one = object(&format!("sim xtp --sender {sender} --receiver {receiver} --arrivals {arrivals} {TANDEM}"));
                assert_eq!((&one["scheme"], &one["sender"], &one["receiver"]), (&"xtp".into(), &sender.into(), &receiver.into()));
                for key in ["throughput_messages_per_slot", "overflow_drops", "packets_sent", "packets_retransmitted", "messages_delivered"]
                {
                    assert!(one[key].as_f64().unwrap() >= 0.0, "{key}: {one}");
                }
                assert_eq!(one["delay_slots_mean"].is_null(), one["unstable"].as_bool().unwrap(), "{one}");
                assert!(one["delay_slots_mean"].as_f64().is_none_or(|delay| delay > 17.0), "{one}");
            }
        }
    }
    let lost = object(&format!("sim xtp --sender gbn --receiver discard {TANDEM}"));
    assert_eq!((&lost["unstable"], &lost["unstable_runs"], &lost["delay_slots_mean"]), (&true.into(), &1.into(), &Value::Null));
    let several =
        object("sim xtp --user-rate 0.06 --slots 1e5 --replications 3 --tie drawn --order arrivals --packet-error-rate 1e-3 --json");
    assert!(several["delay_slots_mean_ci95"].as_f64().unwrap() > 0.0 && several["packets_corrupted"].as_f64().unwrap() > 1.0, "{several}");
    for (words, told) in [
        ("xtp --rtt 60ms", "--rtt belongs to schemes over a black box"),
        ("sstp --user-rate 0.1", "write `segstream sim xtp --user-rate"),
        ("--seed 1 xtp", "write it in front of them"),
        ("xtp --sender arq", "write gbn, sr, handshake or handshake-gbn"),
        ("xtp --arrivals poisson", "write bernoulli, or ibp"),
        ("xtp --user-rate 1.5", "1.5 messages a slot"),
        ("xtp --user-rate 0.1 --arrivals ibp:c2=0.1", "has a squared coefficient of variation of 0.1"),
        ("xtp --window 0", "a window of 0 packets"),
        ("xtp --link1-room 0", "the room of LINK1 is 0"),
    ] {
        let ended = run(format!("sim {words}").split(' '));
        assert_eq!(ended.code, Some(2), "{words}: {ended:?}");
        assert!(ended.stderr.contains(told), "{words}: {ended:?}");
    }
    let help = run(["sim", "xtp", "--help"]);
    assert!(help.code == Some(0), "{help:?}");
}

#[test]
fn replications_give_intervals() {
    let several = object("sim sstp --loss 1e-2 --packets 50000 --replications 4 --json");
    assert_eq!(several["replications"], 4);
    for key in ["throughput_efficiency_ci95", "delay_ms_mean_ci95", "packets_sent_ci95"] {
        assert!(several[key].as_f64().unwrap() > 0.0, "{key}: {several}");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let numbers = |threads: &str, seed: &str| {
        let line = format!("sim segstream --loss 1e-2 --packets 50000 --replications 3 --threads {threads} --seed {seed} --json");
        let mut object = object(&line);
        for key in ["wall_seconds", "packets_per_second"] {
            object.as_object_mut().unwrap().remove(key);
        }
        object
    };
    assert_eq!(numbers("1", "5"), numbers("3", "5"));
    assert_ne!(numbers("1", "5"), numbers("1", "6"));
}

#[test]
fn the_papers_operating_point_gives_the_papers_delays() {
    for (tolerance, rounds) in [("256,0,0", 1.0), ("256,1,1", 1.0), ("256,256,256", 0.0)] {
        // One listed loss of two packets in a segment costs one round trip, two if both are lost again.
        let line = format!("sim sstp --tolerance {tolerance} --loss list:5,17 --feedback ideal --packets 100000 --json");
        let max = object(&line)["delay_ms_max"].as_f64().unwrap();
        let expected = 4.194 + 30.0 + rounds * 60.06;
        assert!((max - expected).abs() < 0.1, "{tolerance}: {max} ms, {expected} expected");
    }
}

#[test]
fn taps_write_the_events_and_a_capture_that_inspect_opens() {
    let folder = tempfile::tempdir().unwrap();
    let (log, pcap) = (folder.path().join("events"), folder.path().join("packets.pcap"));
    let (log, pcap) = (log.to_str().unwrap(), pcap.to_str().unwrap());
    object(&format!("sim sstp --loss list:5 --packets 2560 --check --log {log} --pcap {pcap} --json"));
    let events = std::fs::read_to_string(log).unwrap();
    assert!(events.lines().count() > 2 * 2560 && events.contains("lost"), "{}", &events[..200]);
    assert!(std::fs::metadata(pcap).unwrap().len() > 2560 * 1024);
    let ended = run(["inspect", pcap]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let again = run(format!("sim sstp --packets 2560 --log {log}").split(' '));
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("does not exist"), "{}", again.stderr);
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    for (line, sentence) in [
        ("sim", "SCHEME"),
        ("sim stcp", "known are segstream, sstp, snr"),
        ("sim sstp --window 0", "a window of 0 segments"),
        ("sim sstp --window 100000", "give 1 to"),
        ("sim sstp --tolerance 256,257,1", "lower E"),
        ("sim sstp --tolerance 128,1,1", "W must be the segment"),
        ("sim sstp --loss 1", "below 1"),
        ("sim sstp --loss bursty:good=0ms,bad=10ms,loss=1", "good"),
        ("sim sstp --bandwidth 0mbit", "above 0"),
        ("sim sstp --bandwidth 500000gbit", "less than a nanosecond"),
        ("sim sstp --packet-bytes 10", "packets of 10 bytes"),
        ("sim sstp --buffer 37", "a buffer of 37 segments"),
        ("sim sstp --ack firm", "soft-lazy"),
        ("sim sstp --accounting loose", "paper-literal"),
        ("sim sstp --feedback some", "ideal"),
        ("sim sstp --packets 100", "less than one segment"),
        ("sim sstp --packets many", "1e6"),
        ("sim sstp --replications 0", "replications"),
        ("sim sstp --status-period 5ms", "sstp does not use --"),
        ("sim segstream --feedback ideal", "segstream does not use --"),
        ("sim snr --tolerance 256,1,1", "snr does not use --"),
        ("sim snr --ack soft-lazy", "snr does not use --"),
    ] {
        let ended = run(line.split(' '));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(sentence), "{line}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{line}");
    }
}
