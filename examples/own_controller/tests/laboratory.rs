//! The controller in the laboratory, beside a Reno flow on one link, and on sockets.

use segstream::blocking::Endpoint;
use segstream::{Algorithm, Config, Contract, StreamId, Verdict};
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration};
use segstream_lab::shared::{SharedFlow, SharedScenario, Traffic, run};
use segstream_own_controller::MULTCP;

#[test]
fn beside_a_reno_flow_that_loses_when_it_does_it_has_the_share_that_the_law_gives() {
    let scenario = SharedScenario {
        bandwidth: Bandwidth::from_megabits_per_second(20),
        queue: Bytes::new(150_000),
        duration: Duration::from_secs(200),
        warm_up: Duration::from_secs(20),
        flows: vec![
            SharedFlow::new("own", Traffic::tcp(&MULTCP)),
            SharedFlow::new("reno", Traffic::tcp(Algorithm::named("reno").unwrap())),
        ],
        ..SharedScenario::default()
    };
    let ratios: Vec<f64> = (1..=5)
        .map(|seed| {
            let (outcome, _) = run(&scenario, Seed(seed)).unwrap();
            assert_eq!(outcome.trouble, None);
            let throughput = |flow| outcome.flow(flow).unwrap().throughput_bps();
            assert!(throughput("own") + throughput("reno") > 0.9 * 20e6);
            throughput("own") / throughput("reno")
        })
        .collect();
    // A window that grows by a packets a round and loses the part b has a mean of a (2 - b) / (2 b) where all lose in each overflow of the queue:
    // 2 and 1/4 beside 1 and 1/2 give 14/3. Two times as much, as two flows of Reno would have, takes losses that come to each by itself.
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((4.2..5.1).contains(&mean), "{ratios:?}");
}

#[test]
fn it_runs_on_sockets() {
    let mut receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0)).unwrap();
    let peer = receiver.peer();
    let receiving = std::thread::spawn(move || {
        let id = receiver.accept(None).unwrap();
        let mut connection = receiver.connection(id);
        while connection.recv(StreamId::FIRST, None).unwrap().is_some() {}
        connection.closed(None).unwrap();
        receiver.close().unwrap();
    });
    let config = Config::default().with_congestion(&MULTCP);
    let mut endpoint = Endpoint::builder().config(config).bind(([127, 0, 0, 1], 0)).unwrap();
    let id = endpoint.connect(peer, vec![Contract::default()]).unwrap();
    let mut connection = endpoint.connection(id);
    let segment = connection.send(StreamId::FIRST, vec![7; 2000 * 1024].into()).unwrap();
    assert_eq!(connection.verdict(StreamId::FIRST, segment, None).unwrap().verdict, Verdict::Complete);
    let phase = connection.statistics().unwrap().phase;
    assert!(matches!(phase, Some("start-up" | "avoidance")), "{phase:?}");
    connection.close(0, "done").unwrap();
    receiving.join().unwrap();
}
