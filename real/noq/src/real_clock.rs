//! A run in real time: each host on a thread and a UDP socket of its own, over quicgym's relay.
//!
//! quicgym's times count on CLOCK_MONOTONIC, and so does `Instant` on Linux.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::peer::Outlet;
use crate::plan::Flow;
use crate::receiver::{Receiver, ReceiverRecord};
use crate::rows::Record;
use crate::run::Run;
use crate::sender::{Sender, SenderRecord};
use crate::{Halt, Watch, merge};

const PROGRESS_INTERVAL: i64 = 1_000_000_000;
const LOOK_INTERVAL: i64 = 50_000_000; // at most so long until a thread sees that the run is over
const HANDSHAKE_LIMIT: i64 = 10_000_000_000;
const SILENCE_LIMIT: i64 = 5_000_000_000;
const BATCH: usize = 64; // datagrams that are read before there is something sent again
const LARGEST_DATAGRAM: usize = 65_535;
const PRIORITY: libc::c_int = 1;

/// A socket of one host; the relay's address stands for the other host.
pub struct Socket {
    pub socket: UdpSocket,
    pub remote: SocketAddr,
}

struct SocketOutlet<'run> {
    socket: &'run UdpSocket,
    remote: SocketAddr,
}

impl Outlet for SocketOutlet<'_> {
    fn send(&mut self, _time: i64, datagram: BytesMut) -> Result<(), String> {
        loop {
            match self.socket.send_to(&datagram, self.remote) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The kernel has no room: as on a full network card, the packet is lost.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(format!("sending a datagram: {error}")),
            }
        }
    }
}

/// The state that the threads of a run share.
struct Shared {
    is_over: AtomicBool,
    failure: Mutex<Option<String>>, // the first
}

impl Shared {
    fn fail(&self, reason: String) {
        let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.get_or_insert(reason);
        self.is_over.store(true, Ordering::Release);
    }
}

/// The numbers of one flow that a run shows while it continues.
#[derive(Default)]
struct Shown {
    received: AtomicU64,
    smoothed_rtt: AtomicI64,
}

/// One host, of whichever side.
trait Side {
    fn record(&mut self, end: i64) -> Result<(), String>;
    fn on_datagram(
        &mut self,
        now: i64,
        datagram: BytesMut,
        outlet: &mut SocketOutlet<'_>,
    ) -> Result<(), String>;
    fn drive(&mut self, now: i64, run: &Run, outlet: &mut SocketOutlet<'_>) -> Result<(), String>;
    fn next_timeout(&self) -> i64;
    fn is_open(&self, now: i64) -> bool;
    fn show(&self, shown: &Shown);
}

impl Side for Sender {
    fn record(&mut self, end: i64) -> Result<(), String> {
        Self::record(self, end)
    }
    fn on_datagram(
        &mut self,
        now: i64,
        datagram: BytesMut,
        outlet: &mut SocketOutlet<'_>,
    ) -> Result<(), String> {
        Self::on_datagram(self, now, datagram, outlet)
    }
    fn drive(&mut self, now: i64, run: &Run, outlet: &mut SocketOutlet<'_>) -> Result<(), String> {
        Self::drive(self, now, run, outlet)?;
        if self.is_connecting() && now > self.start() + HANDSHAKE_LIMIT {
            return Err("no handshake within 10 s: the peer is silent, or what it sends is no QUIC".into());
        }
        Ok(())
    }
    fn next_timeout(&self) -> i64 {
        Self::next_timeout(self)
    }
    fn is_open(&self, _now: i64) -> bool {
        Self::is_open(self)
    }
    fn show(&self, shown: &Shown) {
        shown.smoothed_rtt.store(self.smoothed_rtt(), Ordering::Relaxed);
    }
}

impl Side for Receiver {
    fn record(&mut self, end: i64) -> Result<(), String> {
        Self::record(self, end)
    }
    fn on_datagram(
        &mut self,
        now: i64,
        datagram: BytesMut,
        outlet: &mut SocketOutlet<'_>,
    ) -> Result<(), String> {
        Self::on_datagram(self, now, datagram, outlet)
    }
    fn drive(&mut self, now: i64, _run: &Run, outlet: &mut SocketOutlet<'_>) -> Result<(), String> {
        Self::drive(self, now, outlet)
    }
    fn next_timeout(&self) -> i64 {
        Self::next_timeout(self)
    }
    fn is_open(&self, now: i64) -> bool {
        Self::is_open(self, now)
    }
    fn show(&self, shown: &Shown) {
        shown.received.store(self.received(), Ordering::Relaxed);
    }
}

/// From now until the scenario's end, on this thread.
fn live<Host: Side>(
    host: &mut Host,
    socket: &Socket,
    run: &Run,
    shared: &Shared,
    shown: &Shown,
) -> Result<(), String> {
    be_punctual();
    let duration = run.schedule.duration;
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    let mut last_heard = 0;
    while !shared.is_over.load(Ordering::Acquire) {
        let now = run.moments.of(Instant::now());
        host.record(now.min(duration.saturating_add(1)))?; // as it was: nothing has happened since
        if now > duration {
            return Ok(());
        }
        let mut outlet = SocketOutlet { socket: &socket.socket, remote: socket.remote };
        let mut count = 0;
        while count < BATCH {
            match socket.socket.recv(&mut buffer) {
                Ok(bytes) => host.on_datagram(now, BytesMut::from(&buffer[..bytes]), &mut outlet)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(format!("receiving a datagram: {error}")),
            }
            count += 1;
        }
        if count > 0 || !host.is_open(now) {
            last_heard = now;
        }
        if now > last_heard + SILENCE_LIMIT {
            return Err(
                "nothing came from the peer for 5 s: it has died, or the link was silent for longer".into()
            );
        }
        host.drive(now, run, &mut outlet)?;
        host.show(shown);
        if count < BATCH {
            let now = run.moments.of(Instant::now());
            let due = host.next_timeout().min(now + LOOK_INTERVAL).min(duration + 1);
            wait(&socket.socket, due - now).map_err(|error| format!("ppoll: {error}"))?;
        }
    }
    Ok(())
}

/// Until a datagram comes, or so many ns have passed.
fn wait(socket: &UdpSocket, time: i64) -> io::Result<()> {
    if time <= 0 {
        return Ok(());
    }
    let mut polled = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec { tv_sec: time / 1_000_000_000, tv_nsec: time % 1_000_000_000 };
    // SAFETY: one descriptor, which is open.
    if unsafe { libc::ppoll(&raw mut polled, 1, &raw const limit, std::ptr::null()) } >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// Timers without slack, and a real-time priority where the system permits it.
fn be_punctual() {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: of this thread alone. Without permission the second changes nothing, which the audit shows.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::pthread_setschedparam(libc::pthread_self(), libc::SCHED_FIFO, &raw const parameters);
    }
}

/// Takes the sockets of each flow's sender and receiver. `run.moments` is when the relay started.
pub fn carry_out(
    flows: &[Flow],
    run: &Run,
    sockets: &[(Socket, Socket)],
    watch: &mut impl Watch,
    deadline: Duration,
    called: Instant,
) -> Result<Vec<Record>, Halt> {
    let mut pairs = Vec::with_capacity(flows.len());
    for (number, (flow, (here, there))) in flows.iter().zip(sockets).enumerate() {
        pairs.push(run.pair(number, flow, here.remote, there.remote)?);
    }
    let shared = Shared { is_over: AtomicBool::new(false), failure: Mutex::new(None) };
    let shown: Vec<Shown> = flows.iter().map(|_| Shown::default()).collect();
    let (records, halted) = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(flows.len());
        for (number, ((mut sender, mut receiver), (here, there))) in
            pairs.into_iter().zip(sockets).enumerate()
        {
            let (shared, shown) = (&shared, &shown[number]);
            let of_flow = move |reason: String| shared.fail(format!("flow {number}: {reason}"));
            let sending = scope.spawn(move || -> Option<SenderRecord> {
                let lived = live(&mut sender, here, run, shared, shown);
                lived.and_then(|()| sender.finish()).map_err(of_flow).ok()
            });
            let receiving = scope.spawn(move || -> Option<ReceiverRecord> {
                let lived = live(&mut receiver, there, run, shared, shown);
                lived.map(|()| receiver.finish()).map_err(of_flow).ok()
            });
            threads.push((sending, receiving));
        }
        let halted = watch_over(run, &shared, &shown, watch, deadline, called).err();
        shared.is_over.store(halted.is_some(), Ordering::Release);
        let mut records = Vec::with_capacity(flows.len());
        for (sending, receiving) in threads {
            if let (Ok(Some(sent)), Ok(Some(received))) = (sending.join(), receiving.join()) {
                records.push((sent, received));
            }
        }
        (records, halted)
    });
    let failure = shared.failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(reason) = failure {
        return Err(Halt::Reason(reason));
    }
    if let Some(halt) = halted {
        return Err(halt);
    }
    if records.len() < flows.len() {
        return Err(Halt::Reason("a host's thread has panicked, a fault of quicgym-noq's".into()));
    }
    Ok(records.into_iter().map(|(sent, received)| merge(sent, received)).collect())
}

/// Until the scenario's end, on the calling thread: shows what is going on, and ends what takes too long.
fn watch_over(
    run: &Run,
    shared: &Shared,
    shown: &[Shown],
    watch: &mut impl Watch,
    deadline: Duration,
    called: Instant,
) -> Result<(), Halt> {
    let mut next_progress = PROGRESS_INTERVAL;
    while !shared.is_over.load(Ordering::Acquire) {
        let now = run.moments.of(Instant::now());
        if now > run.schedule.duration {
            return Ok(());
        }
        if called.elapsed() > deadline {
            return Err(Halt::deadline(deadline, now));
        }
        if now >= next_progress {
            let flows: Vec<_> = shown
                .iter()
                .map(|flow| {
                    (flow.received.load(Ordering::Relaxed), flow.smoothed_rtt.load(Ordering::Relaxed))
                })
                .collect();
            watch.progress(now, &flows)?;
            next_progress += PROGRESS_INTERVAL;
        }
        let left = (run.schedule.duration - now + 1).clamp(1, LOOK_INTERVAL);
        thread::sleep(Duration::from_nanos(left.unsigned_abs()));
    }
    Ok(())
}
