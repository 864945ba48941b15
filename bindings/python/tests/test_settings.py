"""The settings of an endpoint and what follows from them: the names are those of the library."""

import json
import threading

import pytest
import segstream
from conftest import PATIENCE, connected
from segstream._settings import Settings


def transfer(endpoint: segstream.Endpoint, segments: int = 3, **options: object) -> segstream.Connection:
    """Sends some segments to ``endpoint``, and closes; the sender's connection is returned before that is over."""
    sender, receiver = connected(endpoint, **options)
    closing = threading.Thread(target=receiver.closed, args=(PATIENCE,))
    for number in range(segments):
        sender.send(bytes(2000 + number))
    sender.senders[0].finish()
    stream = receiver.accept_stream(PATIENCE)
    assert [len(segment) for segment in stream] == [2000 + number for number in range(segments)]
    closing.start()
    sender.close(timeout=PATIENCE)
    closing.join()
    return sender


@pytest.mark.parametrize(
    "setting",
    [
        {"coding": "off"},
        {"coding": "auto:latency=80ms,budget=10%"},
        {"congestion": "cubic"},
        {"rate": "unpaced", "class_": 6, "unlimited": True},
        {"careful_resume": False, "circuit_breaker": False, "offload": False},
        {"streams_max": 4, "stream_window_bytes": 1 << 20, "connection_window_bytes": 4 << 20, "memory_bytes": 64 << 20},
        {"connections": 4, "connections_per_peer": 2, "setups": 8, "setups_per_host": 8, "handshakes_per_second": 100},
        {"memory_bytes_per_peer": 16 << 20, "reorder": 8, "socket_buffer_bytes": 1 << 20, "datagram_bytes": 1200},
    ],
)
def test_segments_arrive_under_every_setting(setting):
    with segstream.listen("127.0.0.1:0", allow_anyone=True, **setting) as endpoint:
        transfer(endpoint, **setting)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"coding": "sometimes"}, "sometimes"),
        ({"congestion": "hope"}, "hope"),
        ({"congestion": "cubic", "rate": 1e6}, "rate='auto'"),
        ({"rate": "fast"}, "'fast'"),
        ({"class_": 9}, "class_=9"),
        ({"datagram_bytes": 100}, "1200 to 65507"),
        ({"reorder": 500}, "reorder=500"),
        ({"idle_timeout": -1.0}, "idle_timeout=-1"),
        ({"allow": ["SHA256:none"]}, "none"),
        ({"authorities": "/dev/null"}, "certificate"),
    ],
)
def test_a_wrong_value_is_refused_with_the_value(setting, told):
    with pytest.raises(segstream.UsageError) as caught:
        segstream.bind(**setting)
    assert told in str(caught.value)


def test_every_setting_has_a_type_that_is_checked():
    for name in Settings.__annotations__:
        with pytest.raises((TypeError, ValueError)):
            segstream.bind(**{name: object()})


def test_a_setting_that_is_none_is_the_usual_one():
    with segstream.bind(datagram_bytes=None, stream_window_bytes=None):
        pass


def test_an_admission_is_changed_while_the_endpoint_serves(tmp_path):
    admission, key = segstream.Admission(), tmp_path / "key.pem"
    with segstream.listen("127.0.0.1:0", admission=admission) as endpoint:
        with pytest.raises(segstream.PeerError):
            segstream.connect(endpoint.address, endpoint.fingerprint, identity=key)
        admission.allow(segstream.identity(key))
        transfer(endpoint, identity=key)
        with pytest.raises(segstream.UsageError):
            admission.allow("no fingerprint")
    with pytest.raises(segstream.UsageError, match="allow or admission"):
        segstream.listen("127.0.0.1:0", admission=admission, allow=[segstream.identity(key)])


def test_secrets_and_events_are_written_where_they_are_asked_for(tmp_path):
    keys, qlog, losses = tmp_path / "keys.log", tmp_path / "qlog", tmp_path / "losses.json"
    with segstream.listen("127.0.0.1:0", allow_anyone=True, key_log=keys, qlog=qlog, loss_log=losses) as endpoint:
        transfer(endpoint)
        assert endpoint.events_omitted == 0
    assert keys.read_text().count("CLIENT_TRAFFIC_SECRET_0") == 1 and keys.stat().st_mode & 0o077 == 0
    (one,) = qlog.iterdir()
    records = [json.loads(record) for record in one.read_bytes().split(b"\x1e") if record.strip()]
    assert "trace" in records[0] and len(records) > 3
    assert losses.exists()


def test_shards_share_a_port_and_a_key():
    shards = segstream.listen_shards("127.0.0.1:0", 2, allow_anyone=True)
    assert len({(shard.address, shard.fingerprint) for shard in shards}) == 1
    served = [0, 0]

    def serve(number: int) -> None:
        try:
            while True:
                connection = shards[number].accept(2.0)
                served[number] += sum(1 for _ in connection.accept_stream(PATIENCE))
                connection.closed(PATIENCE)
        except segstream.TimedOutError:
            pass

    serving = [threading.Thread(target=serve, args=(number,)) for number in range(2)]
    for thread in serving:
        thread.start()
    for _ in range(6):
        with segstream.connect(shards[0].address, shards[0].fingerprint) as connection:
            connection.send(b"x")
    for thread in serving:
        thread.join()
    assert sum(served) == 6
    for shard in shards:
        shard.close(PATIENCE)
    with pytest.raises(segstream.UsageError):
        segstream.listen_shards("127.0.0.1:0", 0, insecure=True)


def test_what_is_confirmed_is_told_while_another_thread_waits_for_a_segment():
    with segstream.listen("127.0.0.1:0", allow_anyone=True, confirms=True) as endpoint:
        sender, receiver = connected(endpoint)
        stream = sender.senders[0]
        for _ in range(3):
            stream.send(b"segment")
        incoming = receiver.accept_stream(PATIENCE)
        for _ in range(3):
            incoming.recv(PATIENCE)
        with pytest.raises(segstream.UsageError):
            incoming.confirm(4)
        waiting = threading.Thread(target=incoming.recv, args=(PATIENCE,))
        waiting.start()
        incoming.confirm(2)
        assert stream.confirmed(2, PATIENCE) == segstream.Durable(2, False)
        incoming.confirm_no_more()
        assert stream.confirmed(3, PATIENCE) == stream.durable() == (2, True)
        stream.finish()
        waiting.join()
        sender.abort()


def test_a_sender_is_told_that_its_peer_confirms_nothing(pair):
    with pytest.raises(segstream.PeerError, match="confirms nothing"):
        pair().sender.senders[0].durable()


def test_the_class_changes_while_data_flows(pair):
    sender = pair().sender
    assert sender.statistics()["class"] == 7
    sender.set_class(3, PATIENCE)
    assert sender.statistics()["class"] == 3
    with pytest.raises(segstream.UsageError):
        sender.set_class(8)
    with pytest.raises(segstream.UsageError):
        sender.set_class(0, PATIENCE)


def test_the_rate_changes_its_kind(pair):
    sender = pair().sender
    sender.set_rate(50e6)
    assert sender.rate == 50_000_000
    sender.set_rate("auto", "bbr")
    sender.set_rate("unpaced")
    assert sender.rate is None
    with pytest.raises(segstream.UsageError):
        sender.set_rate(1e6, "cubic")


def test_a_capacity_is_saved_for_the_next_process(pair):
    with segstream.bind() as endpoint:
        assert endpoint.saved_capacity("127.0.0.1:9000") is None
        endpoint.save_capacity("127.0.0.1:9000", segstream.SavedCapacity(20_000_000, 0.05, 1800.0))
        saved = endpoint.saved_capacity("127.0.0.1:9001")
        assert saved is not None and saved[:2] == (20_000_000, 0.05) and 1700 < saved.lifetime <= 1800
        endpoint.save_capacity("127.0.0.1:9000", segstream.SavedCapacity(10_000_000, 0.05, 1e6))
        assert endpoint.saved_capacity("127.0.0.1:9000").lifetime <= 3600
    with segstream.bind(careful_resume=False) as endpoint:
        endpoint.save_capacity("127.0.0.1:9000", segstream.SavedCapacity(20_000_000, 0.05))
        assert endpoint.saved_capacity("127.0.0.1:9000") is None


def test_counters_of_streams_and_sockets(pair):
    ends = pair()
    ends.sender.send(bytes(5000))
    assert ends.stream.recv(PATIENCE).is_met
    assert ends.sender.stream_statistics()["units_sent"] == 5
    assert ends.sender.stream_statistics(9)["units_sent"] == 0
    with segstream.listen("127.0.0.1:0", insecure=True) as endpoint:
        assert set(endpoint.socket_counters()) >= {"datagrams_received", "refused"}
        assert endpoint.unmatched()["not_ours"] == 0


def test_an_endpoint_that_stops_accepting_refuses_and_keeps_what_it_has():
    with segstream.listen("127.0.0.1:0", allow_anyone=True) as endpoint:
        sender, receiver = connected(endpoint)
        endpoint.stop_accepting()
        with pytest.raises((segstream.PeerError, segstream.PathError)):
            segstream.connect(endpoint.address, endpoint.fingerprint, connect_timeout=2.0)
        sender.send(b"still")
        assert bytes(receiver.accept_stream(PATIENCE).recv(PATIENCE)) == b"still"
        sender.abort()


def test_the_largest_unit_fits_a_datagram_and_one_more_byte_does_not():
    for insecure in (False, True):
        most = segstream.unit_bytes_max(insecure=insecure)
        assert most >= 1123
        allowed = {"insecure": True} if insecure else {"allow_anyone": True}
        secrecy = {"insecure": True} if insecure else {}
        with segstream.listen("127.0.0.1:0", **allowed) as endpoint:
            transfer(endpoint, streams=[segstream.Contract(unit_bytes=most)], **secrecy)
            with pytest.raises(ValueError):
                segstream.connect(
                    endpoint.address, endpoint.fingerprint, streams=[segstream.Contract(unit_bytes=most + 1)], **secrecy
                )


def test_a_contract_tells_its_interleaving():
    assert [segstream.Contract(interleave=depth).interleave for depth in ("auto", "off", 8)] == ["auto", "off", 8]
