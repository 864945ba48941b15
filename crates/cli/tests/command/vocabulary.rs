//! One vocabulary: JSON, metrics, qlog and `top` tell the same at the end of a transfer with losses, tolerated holes and a move.

use crate::metrics::{address, get, samples};
use crate::moving_relay::MovingRelay;
use crate::process::{content, receiver, run, send};
use crate::qlog::{only, texts};
use segstream::vocabulary::{QUANTITIES, Quantity, Value as Kind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a rule of the vocabulary ([`Quantity::qlog`]) says of the events; none if it looks at no event that is there.
fn evaluate(rule: &str, texts: &[Value]) -> Option<f64> {
    let (told, condition) = rule.split_once(" where ").unwrap_or((rule, ""));
    let (how, path) = told.split_once(' ').unwrap();
    let (event, fields) = path.split_once('.').unwrap_or((path, ""));
    let name = format!("segstream:{event}");
    let mut found: Vec<&Value> = texts.iter().filter(|text| text["name"] == name.as_str()).map(|text| &text["data"]).collect();
    let holds = |value: &&Value| {
        let Some((field, wanted)) = condition.split_once('=') else { return true };
        value.get(field).is_none_or(|is| is.as_str().map_or(is.to_string(), str::to_owned) == wanted)
    };
    found.retain(holds);
    for field in fields.split('.').filter(|field| !field.is_empty()) {
        let items = |value: &'_ Value| value.as_array().is_some();
        let flat: Vec<&Value> =
            found.iter().flat_map(|value| if items(value) { value.as_array().unwrap().iter().collect() } else { vec![*value] }).collect();
        found = match field.parse::<usize>() {
            Ok(place) => flat.into_iter().filter_map(|value| value.get(place)).collect(),
            Err(_) => flat.into_iter().filter(|value| holds(value)).filter_map(|value| value.get(field)).collect(),
        };
    }
    let numbers = || found.iter().filter_map(|value| value.as_f64());
    match how {
        "count" => Some(found.len() as f64),
        "sum" => Some(numbers().sum()),
        "max" => Some(numbers().fold(0.0, f64::max)),
        "last" => numbers().next_back(),
        other => panic!("{other} is no rule"),
    }
}

/// The values that a rule of a histogram finds in the events: of one field, or the time between two events of a segment.
fn values(rule: &str, texts: &[Value]) -> Vec<f64> {
    let path = rule.strip_prefix("each ").unwrap();
    let of = |event: &str| {
        let name = format!("segstream:{event}");
        texts.iter().filter(move |text| text["name"] == name.as_str())
    };
    let Some((later, earlier)) = path.split_once(" - ") else {
        let (event, field) = path.split_once('.').unwrap();
        return of(event).filter_map(|text| text["data"][field].as_f64()).collect();
    };
    let (Some((later, "time")), Some((earlier, field))) = (later.split_once('.'), earlier.split_once('.')) else {
        panic!("{rule} is no rule")
    };
    let number = |data: &Value, field: &str| data[field].as_u64().unwrap();
    let begins: BTreeMap<(u64, u64), f64> = of(earlier)
        .map(|text| &text["data"])
        .map(|data| ((number(data, "stream"), number(data, "segment")), data[field].as_f64().unwrap()))
        .collect();
    of(later)
        .filter(|text| text["data"]["verdict"] != "unknown")
        .flat_map(|text| {
            let (data, end) = (&text["data"], text["time"].as_f64().unwrap());
            let first = number(data, "first");
            (first..first + number(data, "count")).map(|segment| end - begins[&(number(data, "stream"), segment)]).collect::<Vec<f64>>()
        })
        .collect()
}

/// Compares the histograms in a line of JSON with what the qlog tells and, if they are given, with metrics.
fn compare_histograms(line: &Value, texts: &[Value], metrics: Option<&str>) {
    let histograms = QUANTITIES.iter().filter_map(|quantity| match quantity.value {
        Kind::Histogram(_, bounds) => Some((quantity, bounds)),
        _ => None,
    });
    for (Quantity { name, metric, qlog, .. }, bounds) in histograms {
        let (count, sum) = (line[name]["count"].as_f64().unwrap(), line[name]["sum"].as_f64().unwrap());
        let in_qlog = values(qlog.unwrap(), texts);
        // A time of day in milliseconds has a quarter of a microsecond in a double, and differs by two of them.
        let exact_ms = 0.001 * count + 1e-6 * sum;
        assert_eq!(in_qlog.len() as f64, count, "{name}: in the qlog, and in {line}");
        assert!((in_qlog.iter().sum::<f64>() - sum).abs() <= exact_ms, "{name}: {in_qlog:?}, and in {line}");
        let Some(text) = metrics else { continue };
        let samples = samples(text);
        let sample = |end: &str| samples.get(format!("{metric}{end}").as_str()).copied().unwrap_or(0.0);
        let scale = if metric.ends_with("_seconds") { 1e3 } else { 1.0 };
        assert_eq!(sample("_count"), count, "{name}: in metrics, and in {line}");
        assert!((sample("_sum") * scale - sum).abs() <= exact_ms, "{name}: {} in metrics, and in {line}", sample("_sum"));
        for bound in bounds {
            let below: f64 =
                line[name]["buckets"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|bucket| {
                        if bucket[0].as_f64().is_some_and(|le| le <= bound * scale * 1.000_001) { bucket[1].as_f64().unwrap() } else { 0.0 }
                    })
                    .sum();
            let told = text.lines().find_map(|line| line.strip_prefix(&format!("{metric}_bucket{{le=\"{bound}\"}} ")));
            assert_eq!(told.map_or(0.0, |told| told.parse().unwrap()), below, "{name}: up to {bound} in metrics, and in {line}");
        }
    }
}

/// The last line of a file of JSON lines.
fn last_line(path: &Path) -> Value {
    serde_json::from_str(std::fs::read_to_string(path).unwrap().lines().last().unwrap()).unwrap()
}

/// What a connection still sends and receives after its last line of JSON: goodbyes and their repetitions.
fn grows_after_the_end(name: &str) -> bool {
    ["shipments_sent", "bytes_sent", "shipments_received", "bytes_received", "shipments_duplicate", "report_shipments_sent"].contains(&name)
}

/// The total of a quantity in a line of `--stats-json`, for which there is a rule too.
fn totals<'a>(line: &'a Value) -> impl Iterator<Item = (&'static Quantity, f64, Option<&'static str>)> + 'a {
    let totals = QUANTITIES.iter().filter(|quantity| matches!(quantity.value, Kind::Total(_)));
    totals.map(move |quantity| {
        (quantity, line[quantity.name].as_f64().unwrap_or_else(|| panic!("{} is not in {line}", quantity.name)), quantity.qlog)
    })
}

/// What `top` says of the streams that were received, summed up: complete, within tolerance, expired.
fn verdicts_in_top(text: &str) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for line in text.lines().filter(|line| line.starts_with("received stream")) {
        for (sum, words) in sums.iter_mut().zip([" complete", " within tolerance", " expired"]) {
            let before = &line[..line.find(words).unwrap()];
            *sum += before.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        }
    }
    sums
}

#[test]
fn json_metrics_qlog_and_top_tell_the_same_of_a_run_with_losses_tolerated_holes_and_a_move() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (file, qlogs, ours, theirs) = (path("data.bin"), path("logs"), path("sender.jsonl"), path("receiver.jsonl"));
    std::fs::write(&file, content(6_000_000)).unwrap();
    let (mut receiver, at) = receiver(&["--keep", "--json", "--metrics", "127.0.0.1:0", "--qlog", &qlogs, "--stats-json", &theirs]);
    let metrics = address(&mut receiver);
    let relay = MovingRelay::start(at.parse().unwrap(), 1500);
    let through = relay.address.to_string();
    let flags = ["--tolerance", "64,3,2", "--rate", "20mbit", "--json", "--qlog", &qlogs, "--stats-json", &ours];
    let sent = send([&[through.as_str(), file.as_str()][..], &flags[..]].concat()).expect(0).json();
    let deadline = Instant::now() + Duration::from_secs(30);
    let text = loop {
        let text = get(&metrics, "GET", "/metrics").1;
        if samples(&text).get("segstream_connections") == Some(&0.0) && text.contains("segstream_units_received_total") {
            // Why again: a scrape reads totals before present values, so this one may have totals from before the end.
            break get(&metrics, "GET", "/metrics").1;
        }
        assert!(Instant::now() < deadline, "the connection does not end: {text}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let top = String::from_utf8(run(["top", &metrics, "--interval", "200ms"]).expect(0).stdout).unwrap();
    let received = receiver.interrupt().expect(0).json();
    let (client, server) = (texts(&only(Path::new(&qlogs), "client.sqlog")), texts(&only(Path::new(&qlogs), "server.sqlog")));
    let (ours, theirs) = (last_line(Path::new(&ours)), last_line(Path::new(&theirs)));
    let samples = samples(&text);

    // The run had what it was to have.
    assert!(relay.lost() > 20, "{}", relay.lost());
    assert_eq!(theirs["peer_migrations"], 1, "{theirs}");
    assert!(theirs["units_tolerated"].as_u64().unwrap() > 0 && ours["units_retransmitted"].as_u64().unwrap() > 0, "{ours} {theirs}");

    // JSON, metrics and qlog of the receiver, which had one connection.
    for (quantity, in_json, rule) in totals(&theirs) {
        let Quantity { name, metric, .. } = quantity;
        let in_metrics = *samples.get(metric).unwrap_or_else(|| panic!("{metric} is not in {text}"));
        if grows_after_the_end(name) {
            assert!(in_metrics >= in_json && in_metrics <= in_json * 1.05 + 2000.0, "{name}: {in_json} in JSON, {in_metrics} in metrics");
        } else {
            assert_eq!(in_metrics, in_json, "{name}: in metrics and in JSON");
        }
        if let Some(rule) = rule {
            assert_eq!(evaluate(rule, &server), Some(in_metrics), "{name}: {rule}, and in metrics");
        }
    }
    // JSON and qlog of the sender.
    for (quantity, in_json, rule) in totals(&ours) {
        let Some(rule) = rule else { continue };
        let in_qlog = evaluate(rule, &client).unwrap();
        let name = quantity.name;
        if grows_after_the_end(name) {
            assert!(in_qlog >= in_json && in_qlog <= in_json * 1.05 + 2000.0, "{name}: {in_json} in JSON, {in_qlog} by {rule}");
        } else {
            assert_eq!(in_qlog, in_json, "{name}: {rule}, and in JSON");
        }
    }
    compare_histograms(&theirs, &server, Some(&text));
    compare_histograms(&ours, &client, None);
    for (line, name) in [(&ours, "verdict_ms"), (&theirs, "assembly_ms"), (&theirs, "delay_over_least_ms"), (&theirs, "loss_run_shipments")]
    {
        assert!(line[name]["count"].as_u64().unwrap() > 5, "{name}: {line}");
    }
    // The relay loses two datagrams that follow each other.
    assert!(theirs["loss_run_shipments"]["buckets"].as_array().unwrap().iter().any(|bucket| bucket[0] == 2.0), "{theirs}");
    // The results of both ends, and top.
    assert_eq!((&sent["verdicts"], &sent["holes"]), (&received["verdicts"], &received["holes"]), "{sent} {received}");
    assert_eq!(received["holes"], theirs["units_tolerated"]);
    for (place, metric) in
        ["segstream_segments_complete_total", "segstream_segments_within_tolerance_total", "segstream_segments_expired_total"]
            .into_iter()
            .enumerate()
    {
        assert_eq!(verdicts_in_top(&top)[place], samples[metric], "{metric}, and in top:\n{top}");
    }
    // Present values are known to the qlog of whoever has a rate.
    for Quantity { name, qlog, .. } in QUANTITIES.iter().filter(|quantity| quantity.qlog.is_some_and(|rule| rule.contains("rtt"))) {
        assert!(evaluate(qlog.unwrap(), &client).is_some_and(|value| value > 0.0), "{name}");
    }
}

#[test]
fn what_top_shows_is_in_the_vocabulary() {
    let view = include_str!("../../src/top/view.rs");
    let heads = view.split("let mut columns = vec![").nth(1).unwrap().split(']').next().unwrap();
    let heads = heads.split('"').skip(1).step_by(2).chain(["QUEUE"]);
    let shown: Vec<&str> = QUANTITIES.iter().filter_map(|quantity| quantity.top).collect();
    for head in heads.filter(|head| *head != "PEER") {
        assert!(shown.contains(&head), "{head} is shown by top and is in no quantity");
    }
    for word in shown {
        assert!(view.contains(word), "{word} of the vocabulary is not shown by top");
    }
}
