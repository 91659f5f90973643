"""libzmq's part in the interoperability tests: one role per run, reporting in lines."""

import sys

import zmq
from zmq.utils.monitor import recv_monitor_message

SIZES = [0, 1, 254, 255, 256, 65_535, 65_536, 5_000_000]
PATIENCE = 30_000

context = zmq.Context()


def say(*words):
    print(*words, flush=True)


def socket(kind, **options):
    made = context.socket(kind)
    made.linger = 0
    made.rcvtimeo = made.sndtimeo = PATIENCE
    for name, value in options.items():
        setattr(made, name, value)
    return made


def connect(kind, address, **options):
    made = socket(kind, **options)
    made.connect("tcp://" + address)
    return made


def bind(kind, **options):
    made = socket(kind, **options)
    port = made.bind_to_random_port("tcp://127.0.0.1")
    say(f"127.0.0.1:{port}")
    return made


def ask(peer, payload):
    peer.send(payload)
    assert peer.recv() == payload


def keeps_connection(*monitors):
    """Whether none of the monitored sockets loses its connection for a while (many heartbeats)."""
    poller = zmq.Poller()
    for monitor in monitors:
        poller.register(monitor, zmq.POLLIN)
    return not poller.poll(1_500)


LOSSES = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED
HEARTBEAT = {"heartbeat_ivl": 50, "heartbeat_timeout": 1_000}


def req(address):
    peer = connect(zmq.REQ, address)
    for size in SIZES:
        ask(peer, b"x" * size)
    for number in range(500):
        ask(peer, str(number).encode())


def envelopes(address):
    ask(connect(zmq.REQ, address, routing_id=b"salt-req/minion/web1/42/0", req_correlate=1), b"request")
    dealer = connect(zmq.DEALER, address)
    for number in range(100):
        dealer.send_multipart([b"", str(number).encode()])
    for number in range(100):
        assert dealer.recv_multipart() == [b"", str(number).encode()]


def sub(address):
    peer = connect(zmq.SUB, address)
    peer.subscribe(b"")
    for size in SIZES:
        assert peer.recv_multipart() == [b"x" * size]
    for _ in range(1_000):
        assert peer.recv_multipart() == [b"small"]


def topics(address):
    peer = connect(zmq.SUB, address)
    peer.subscribe(b"a")
    peer.subscribe(b"b")
    say(*(peer.recv().decode() for _ in range(3)))
    peer.unsubscribe(b"a")
    peer.subscribe(b"end")
    say(*(peer.recv().decode() for _ in range(2)))


def router(_):
    peer = bind(zmq.ROUTER)
    payload = None
    while payload != b"end":
        identity, delimiter, payload = peer.recv_multipart()
        peer.send_multipart([identity, delimiter, payload])
    # The reply is on its way only when the socket is closed in an orderly manner.
    peer.close(linger=PATIENCE)
    context.term()


def xpub(_):
    peer = bind(zmq.XPUB)
    assert peer.recv() == b"\x01"
    for size in SIZES:
        peer.send(b"x" * size)
    peer.close(linger=PATIENCE)
    context.term()


def heartbeat_req(address):
    peer = socket(zmq.REQ, **HEARTBEAT)
    monitor = peer.get_monitor_socket(LOSSES)
    peer.connect("tcp://" + address)
    say("no disconnection" if keeps_connection(monitor) else recv_monitor_message(monitor))
    ask(peer, b"request")


def heartbeat_sub(address):
    peer = socket(zmq.SUB, **HEARTBEAT)
    monitor = peer.get_monitor_socket(LOSSES)
    peer.connect("tcp://" + address)
    peer.subscribe(b"")
    say("no disconnection" if keeps_connection(monitor) else recv_monitor_message(monitor))


def heartbeat_servers(_):
    replier = bind(zmq.ROUTER, **HEARTBEAT)
    publisher = bind(zmq.XPUB, **HEARTBEAT)
    monitors = [peer.get_monitor_socket(LOSSES) for peer in (replier, publisher)]
    assert publisher.recv() == b"\x01"
    kept = keeps_connection(*monitors)
    say("no disconnection" if kept else "disconnection")
    replier.send_multipart(replier.recv_multipart())
    publisher.send(b"publication")
    for peer in (replier, publisher):
        peer.disable_monitor()
        peer.close(linger=PATIENCE)


def restart(addresses):
    reply_address, publish_address = addresses.split(",")
    asking = connect(zmq.REQ, reply_address, reconnect_ivl=100, reconnect_ivl_max=5_000)
    listening = connect(zmq.SUB, publish_address, reconnect_ivl=100, reconnect_ivl_max=5_000)
    listening.subscribe(b"")
    ask(asking, b"first")
    say("first", listening.recv().decode())
    # A SUB subscribes again only while its owner is inside a call to it, as a minion's event loop is.
    received = listening.recv()
    ask(asking, b"second")
    say("second", received.decode())


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](sys.argv[2])
