//! quicgym's controllers and policies in noq: what quicgym_noq.stack calls.

mod content;
mod library;
mod moments;
mod network;
mod pacer;
mod packets;
mod peer;
mod plan;
mod qlog;
mod real_clock;
mod receiver;
mod rows;
mod run;
mod sender;
mod steering;
mod tls;
mod virtual_clock;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::slice;
use std::time::{Duration, Instant};

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

use crate::content::Content;
use crate::library::Library;
use crate::moments::Moments;
use crate::network::Network;
use crate::pacer::LATE_CREDIT;
use crate::plan::{Flow, Schedule};
use crate::real_clock::Socket;
use crate::receiver::ReceiverRecord;
use crate::rows::Record;
use crate::run::Run;
use crate::sender::SenderRecord;
use crate::tls::Tls;

create_exception!(quicgym_noq, RunError, PyException, "A run ended before its time.");

/// The reasons that end a run before its time.
pub enum Halt {
    Reason(String),
    Python(PyErr), // of the caller's progress
}

impl Halt {
    fn deadline(deadline: Duration, now: i64) -> Self {
        Self::Reason(format!(
            "the deadline of {} s has passed at {:.3} s of the scenario",
            deadline.as_secs_f64(),
            now as f64 / 1e9
        ))
    }
}

impl From<String> for Halt {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl From<Halt> for PyErr {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Reason(reason) => RunError::new_err(reason),
            Halt::Python(error) => error,
        }
    }
}

/// Hears about every second how far a run is: of each flow the received bytes and the smoothed RTT in ns.
pub trait Watch {
    fn progress(&mut self, time: i64, flows: &[(u64, i64)]) -> Result<(), Halt>;
}

struct PythonWatch(Py<PyAny>);

impl Watch for PythonWatch {
    fn progress(&mut self, time: i64, flows: &[(u64, i64)]) -> Result<(), Halt> {
        let (received, rtts): (Vec<u64>, Vec<i64>) = flows.iter().copied().unzip();
        Python::attach(|python| {
            python.check_signals()?;
            self.0.call1(python, (time, received, rtts)).map(drop)
        })
        .map_err(Halt::Python)
    }
}

fn merge(sent: SenderRecord, received: ReceiverRecord) -> Record {
    let mut rows = sent.rows;
    for (row, goodput_bytes) in rows.iter_mut().zip(received.goodput_bytes) {
        row.goodput_bytes = goodput_bytes;
    }
    Record {
        rows,
        rtt_samples: sent.rtt_samples,
        completion: received.completion,
        compared_bytes: received.received,
        decision_lateness: sent.decision_lateness,
        probe_timeouts: sent.probe_timeouts,
        persistent_congestion: sent.persistent_congestion,
    }
}

/// (rows, RTT samples, completion, compared bytes, lateness of decisions, probe timeouts, persistent congestion); what is an
/// array is its bytes.
fn give<'py>(python: Python<'py>, records: &[Record]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(python);
    for record in records {
        list.append((
            as_bytes(python, &record.rows),
            as_bytes(python, &record.rtt_samples),
            record.completion,
            record.compared_bytes,
            as_bytes(python, &record.decision_lateness),
            record.probe_timeouts,
            record.persistent_congestion,
        ))?;
    }
    Ok(list)
}

fn as_bytes<'py, Entry: Copy>(python: Python<'py>, entries: &[Entry]) -> Bound<'py, PyBytes> {
    // SAFETY: entries are integers and floats of 8 bytes, without padding.
    let bytes = unsafe { slice::from_raw_parts(entries.as_ptr().cast(), size_of_val(entries)) };
    PyBytes::new(python, bytes)
}

/// Carries out a run in virtual time; see quicgym.real.stacks.Stack.run. `network` is the capsule of an
/// EmulatedNetwork, `library` the path of libquicgym-controller. Raises RunError with the reason where the run
/// ends early.
#[pyfunction]
#[pyo3(signature = (library, flows, network, *, duration, interval, progress, deadline_s, qlog_folder=None))]
#[allow(clippy::too_many_arguments)]
fn run_virtual<'py>(
    python: Python<'py>,
    library: PathBuf,
    flows: Vec<Flow>,
    network: &Bound<'py, PyCapsule>,
    duration: i64,
    interval: i64,
    progress: Py<PyAny>,
    deadline_s: f64,
    qlog_folder: Option<PathBuf>,
) -> PyResult<Bound<'py, PyList>> {
    let run = Run {
        tls: Tls::new().map_err(Halt::Reason)?,
        content: Content::new(),
        library: Library::open(&library).map_err(Halt::Reason)?,
        moments: Moments::from(Instant::now()),
        schedule: Schedule { duration, interval },
        late_credit: 0,
        qlog_folder,
    };
    let network = Network::of(network).map_err(Halt::Reason)?;
    let deadline = Duration::from_secs_f64(deadline_s);
    let mut watch = PythonWatch(progress);
    let records = python.detach(|| virtual_clock::carry_out(&flows, &run, network, &mut watch, deadline))?;
    give(python, &records)
}

/// Carries out a run in real time. `connect(path, port)` tells the relay where the receiver of a path is, and returns
/// the address to which its sender sends and the one from which its receiver gets packets; `start()` starts the
/// relay and returns its time 0 on CLOCK_MONOTONIC, in ns.
#[pyfunction]
#[pyo3(signature = (library, flows, connect, start, *, duration, interval, progress, deadline_s, qlog_folder=None))]
#[allow(clippy::too_many_arguments)]
fn run_real<'py>(
    python: Python<'py>,
    library: PathBuf,
    flows: Vec<Flow>,
    connect: &Bound<'py, PyAny>,
    start: &Bound<'py, PyAny>,
    duration: i64,
    interval: i64,
    progress: Py<PyAny>,
    deadline_s: f64,
    qlog_folder: Option<PathBuf>,
) -> PyResult<Bound<'py, PyList>> {
    let called = Instant::now();
    let mut sockets = Vec::with_capacity(flows.len());
    for path in 0..flows.len() {
        let (sender, receiver) = (bind()?, bind()?);
        let addresses = connect.call1((path, receiver.local_addr()?.port()))?;
        let ((host, port), (other_host, other_port)): ((String, u16), (String, u16)) = addresses.extract()?;
        sockets.push((
            Socket { socket: sender, remote: address(&host, port)? },
            Socket { socket: receiver, remote: address(&other_host, other_port)? },
        ));
    }
    // Before the relay's time begins: certificates take milliseconds.
    let tls = Tls::new().map_err(Halt::Reason)?;
    let content = Content::new();
    let library = Library::open(&library).map_err(Halt::Reason)?;
    let started_at: i64 = start.call0()?.extract()?;
    let run = Run {
        tls,
        content,
        library,
        moments: Moments::from(instant_of(started_at)),
        schedule: Schedule { duration, interval },
        late_credit: LATE_CREDIT,
        qlog_folder,
    };
    let deadline = Duration::from_secs_f64(deadline_s);
    let mut watch = PythonWatch(progress);
    let records =
        python.detach(|| real_clock::carry_out(&flows, &run, &sockets, &mut watch, deadline, called))?;
    give(python, &records)
}

fn bind() -> PyResult<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    enlarge_buffers(&socket);
    Ok(socket)
}

/// Does so as far as the system permits; datagrams that do not fit are lost, as QUIC expects.
fn enlarge_buffers(socket: &UdpSocket) {
    use std::os::fd::AsRawFd;
    let bytes: libc::c_int = 4 << 20;
    for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
        // SAFETY: an open socket, and an integer of the size that is told.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const bytes).cast(),
                size_of_val(&bytes) as libc::socklen_t,
            );
        }
    }
}

fn address(host: &str, port: u16) -> PyResult<SocketAddr> {
    let ip: Ipv4Addr = host
        .parse()
        .map_err(|_| RunError::new_err(format!("{host:?} is not an IPv4 address such as 127.0.0.1")))?;
    Ok((ip, port).into())
}

/// A time of CLOCK_MONOTONIC in ns, in the past.
fn instant_of(time: i64) -> Instant {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let age = now.tv_sec * 1_000_000_000 + now.tv_nsec - time;
    Instant::now() - Duration::from_nanos(age.max(0).unsigned_abs())
}

#[pymodule]
mod _noq {
    #[pymodule_export]
    use super::{RunError, run_real, run_virtual};
}
