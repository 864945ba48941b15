//! Bad usage ends with status 2 and a sentence that says what to do.

use crate::process::{receiver, run};

/// The command line, and what the sentence must contain.
const REFUSED: &[(&str, &str)] = &[
    ("send 127.0.0.1:9 x --tolerance 8,9,1", "lower E"),
    ("send 127.0.0.1:9 x --tolerance 8,1,9", "lower B"),
    ("send 127.0.0.1:9 x --tolerance 300,1", "the window is the segment"),
    ("send 127.0.0.1:9 x --tolerance some", "write reliable"),
    ("send 127.0.0.1:9 x --tolerance 5,10", "lower B to 5"),
    ("send 127.0.0.1:9 x --tolerance 1024,5,10", "lower B to 5"),
    ("send 127.0.0.1:9 x --class 3 --tolerance reliable", "add 4 to the class"),
    ("send 127.0.0.1:9 x --latency 120", "similar argument exists: '--lifetime'"),
    ("send 127.0.0.1:9 x --bitrate 5mbit", "similar argument exists: '--rate'"),
    ("send 127.0.0.1:9 x --window 0", "above 0"),
    ("send 127.0.0.1:9 x --window 300", "holds 0 units of 344 bytes"),
    ("send 127.0.0.1:9 x --window 1MiB --segment-bytes 2MiB", "raise --window"),
    ("send 127.0.0.1:9 x --unit-bytes 1161 --insecure", "1 to 1160"),
    ("send 127.0.0.1:9 x --unit-bytes 1149", "1 to 1148"),
    ("send 127.0.0.1:9 x --unit-bytes 1316", "1 to 1148"),
    ("send 127.0.0.1:9 x --unit-bytes 1316 --insecure", "1 to 1160"),
    ("send 127.0.0.1:9 x --unit-bytes 1148 --window 64MiB", "1 to 1146"),
    ("send 127.0.0.1:9 x --datagram-bytes 1000", "1200 to 65507"),
    ("send 127.0.0.1:9 x --rate automatic", "auto:floor=1mbit,peak=50mbit"),
    ("send 127.0.0.1:9 x --rate auto:floor=2mbit,peak=1mbit", "a peak not below it"),
    ("send 127.0.0.1:9 x --rate auto --class 6", "add 1 to the class"),
    ("send 127.0.0.1:9 x --at 5s:class=6", "after 5s: class 6 has no rate control"),
    ("send 127.0.0.1:9 x --class 6 --rate 5mbit --at 5s:rate=auto", "after 5s: class 6 has no rate control"),
    ("send 127.0.0.1:9 x --rate 50", "mbit"),
    ("send 127.0.0.1:9 x --rate 1mbit,1000,100", "raise P"),
    ("send 192.0.2.1:9 x --scheme sstp --insecure", "give --scheme a rate"),
    ("send 127.0.0.1:9 x --scheme sstp --rate auto --insecure", "the rate is not found"),
    ("send 127.0.0.1:9 x --class 8", "error control"),
    ("send 127.0.0.1:9 x --class 4", "--unlimited"),
    ("send 127.0.0.1:9 x --lifetime 0ms", "above 0"),
    ("send 127.0.0.1:9 x --order sideways", "in-order"),
    ("send 127.0.0.1:9 x --interleave 0", "auto, off"),
    ("send 127.0.0.1:9 x --idle-timeout 10ms", "at least 1s"),
    ("send 127.0.0.1:9 x --at 5s:speed=1", "5s:rate=40mbit,class=5"),
    ("send 127.0.0.1:9 x --stats 1", "suffix"),
    ("send 127.0.0.1:9 x --fast", "--fast"),
    ("send 127.0.0.1:9 x y/x", "called x"),
    ("send 127.0.0.1:9 - x", "standard input"),
    ("send 127.0.0.1 x", "host:port"),
    ("send 127.0.0.1:0 x", "host:port"),
    ("send ::1 x", "[::1]:4433"),
    ("send fe80::1%lo x", "[fe80::1%lo]:4433"),
    ("send [fe80::1]:9000 x", "the interface it is reached through"),
    ("send [fe80::1%no-such]:9000 x", "names no network interface"),
    ("send srt://192.0.2.1:9000 x", "a URI of another protocol (srt)"),
    ("send 127.0.0.1:99999 x", "is above 65535"),
    ("send 127.0.0.1:http x", "is not a number"),
    ("recv --listen 127.0.0.1:99999", "is above 65535"),
    ("recv --listen udp://127.0.0.1:9000", "a URI of another protocol (udp)"),
    ("send 0.0.0.0:9 x", "name the address"),
    ("send 127.0.0.1:9", "PATH"),
    ("send 127.0.0.1:9 x --insecure --peer SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "--insecure and --peer contradict"),
    ("send 127.0.0.1:9 x --insecure --code", "--insecure and --code contradict"),
    ("send 127.0.0.1:9 x --insecure --identity y", "--insecure and --identity contradict"),
    ("send 127.0.0.1:9 x --insecure --known-peers y", "--insecure and --known-peers contradict"),
    ("send 127.0.0.1:9 x --code --identity y", "--code and --identity contradict"),
    ("send 127.0.0.1:9 x --code --certificate y", "--code and --certificate contradict"),
    ("send 127.0.0.1:9 x --authority y --peer SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "--authority and --peer contradict"),
    ("send 127.0.0.1:9 x --peer k7qm", "looks like SHA256:"),
    ("send 127.0.0.1:9 x --code-file Cargo.toml", "does not occur in a one-time code"),
    ("send 127.0.0.1:9 x --code k7qm-2xnp-9wdt-4rfh", "the one-time code is no argument"),
    ("recv --listen 127.0.0.1:0 --insecure --allow-anyone", "--insecure and --allow-anyone contradict"),
    ("recv --listen 127.0.0.1:0 --insecure --certificate y", "--insecure and --certificate contradict"),
    ("recv --listen 127.0.0.1:0 --insecure --authority y", "--insecure and --authority contradict"),
    (
        "recv --listen 127.0.0.1:0 --insecure --allow SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
        "--insecure and --allow contradict",
    ),
    (
        "recv --listen 127.0.0.1:0 --allow-anyone --allow SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
        "--allow-anyone and --allow contradict",
    ),
    ("recv --listen 127.0.0.1:0 --allow-anyone --authority y", "--allow-anyone and --authority contradict"),
    ("recv --listen 127.0.0.1:0 --allow-any --authority y", "--allow-anyone and --authority contradict"),
    ("recv --listen 127.0.0.1:0 --max-bytes 0", "above 0"),
    ("recv", "--listen"),
    ("recv --listen nowhere", "such as 127.0.0.1:9000"),
    ("link --listen 127.0.0.1:0 --to localhost:9 --bandwidth 1mbit --rtt 1ms", "such as 127.0.0.1:9000"),
    ("recv --listen 127.0.0.1:0 --holes fill", "zero"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --loss 1", "below 1"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --loss often", "write none"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 0mbit --rtt 1ms", "above 0"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1", "60ms"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:0 --bandwidth 1mbit --rtt 1ms", "name the address"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --corrupt 2", "probability"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --rtt 1ms", "--bandwidth"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit", "--rtt"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --rtt 1ms --trace no-such-file", "cannot open the trace"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --rtt 1ms --trace Cargo.toml", "line 1 of the trace is \"[package]\""),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --jitter often", "wifi:12ms"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --jitter wifi:1h", "mean of the wifi jitter"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --aqm blue", "fq-codel or dualpi2"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --aqm pie:alpha=1", "target, update and burst"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --delay-steps 5s:1ms", "from 0s on"),
    ("link --listen 127.0.0.1:0 --to 127.0.0.1:9 --bandwidth 1mbit --rtt 1ms --aggregate 8", "60ms"),
    ("bench dance", "throughput, ping-pong, at-rate, connections, active, records"),
    ("bench --against quick", "choose of raw, quinn"),
    ("bench --against encrypted", "--protection"),
    ("bench connections --against raw", "raw cannot be compared under connections"),
    ("bench --rate 5mbit", "has an effect on at-rate, active only"),
    ("bench connections --mebibytes 8", "has an effect on throughput, records only"),
    ("bench --mebibytes 8 --seconds 1", "--seconds"),
    ("bench --segment-bytes 100MiB", "at most 67108864"),
    ("bench at-rate --segment-bytes 8", "at least 16"),
    ("bench --datagram-bytes 100", "1200..=65507"),
    ("bench run 127.0.0.1:9", "--peer"),
    ("bench run 127.0.0.1:9 --peer SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "--code"),
    ("bench run nowhere --code --peer SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "is not an address with a port"),
    ("bench run 127.0.0.1:9 at-rate --code --peer SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "must be on one host"),
    ("inspect", "FILE.pcap"),
    ("dance", "dance"),
];

#[test]
fn what_cannot_be_is_refused_before_anything_happens() {
    for (line, expected) in REFUSED {
        let ended = run(line.split(' '));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{line}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{line}");
    }
}

#[test]
fn every_verb_shows_an_example() {
    for verb in ["send", "recv", "link", "bench", "inspect", "demo"] {
        let ended = run([verb, "--help"]).expect(0);
        assert!(
            String::from_utf8(ended.stdout)
                .unwrap()
                .contains(&format!("Example:\n  segstream {verb}").replace("\n  segstream inspect", "\n  ")),
            "{verb}"
        );
    }
}

#[test]
fn a_port_in_use_is_named() {
    let (_receiver, address) = receiver(&[]);
    for ended in [
        run(["recv", "--listen", &address]).expect(1),
        run(["link", "--listen", &address, "--to", "127.0.0.1:9", "--bandwidth", "1mbit", "--rtt", "1ms"]).expect(1),
    ] {
        assert!(ended.stderr.contains(&address) && ended.stderr.contains("already in use"), "{ended:?}");
    }
}
