//! A run in virtual time: an event loop over quicgym's network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::network::{DELIVERED, Network};
use crate::peer::Outlet;
use crate::plan::{Flow, NEVER};
use crate::receiver::Receiver;
use crate::rows::Record;
use crate::run::Run;
use crate::sender::Sender;
use crate::{Halt, Watch, merge};

const PROGRESS_INTERVAL: i64 = 1_000_000_000;
const LOOKS: u32 = 4096; // events between two looks at the wall clock

/// Datagrams on their way, by the number that the network knows them by.
#[derive(Default)]
struct Datagrams {
    slots: Vec<Option<BytesMut>>,
    free: Vec<usize>,
}

impl Datagrams {
    fn put(&mut self, datagram: BytesMut) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[place] = Some(datagram);
        place as u64
    }

    fn take(&mut self, id: u64) -> Option<BytesMut> {
        let place = usize::try_from(id).ok()?;
        let datagram = self.slots.get_mut(place)?.take();
        self.free.push(place);
        datagram
    }
}

/// One host's way into the network.
struct Host<'run, 'capsule> {
    network: &'run Network<'capsule>,
    datagrams: &'run mut Datagrams,
    path: u32,
    backward: bool,
}

impl Outlet for Host<'_, '_> {
    fn send(&mut self, time: i64, datagram: BytesMut) -> Result<(), String> {
        let bytes = datagram.len();
        let id = self.datagrams.put(datagram);
        self.network.send(id, time, self.path, self.backward, bytes)
    }
}

struct Arrival {
    time: i64,
    order: u64,
    path: usize,
    backward: bool,
    id: u64,
}

impl Arrival {
    fn key(&self) -> (i64, u64) {
        (self.time, self.order)
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Arrival {}
impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

struct Pair {
    sender: Sender,
    receiver: Receiver,
    sender_due: i64,
    receiver_due: i64,
}

pub fn carry_out(
    flows: &[Flow],
    run: &Run,
    mut network: Network<'_>,
    watch: &mut impl Watch,
    deadline: Duration,
) -> Result<Vec<Record>, Halt> {
    if flows.len() != network.path_count() {
        return Err(Halt::Reason(format!(
            "{} flows over a network of {} paths",
            flows.len(),
            network.path_count()
        )));
    }
    let beginning = Instant::now();
    let mut pairs = Vec::with_capacity(flows.len());
    for (number, flow) in flows.iter().enumerate() {
        // Each path is a world of its own: the addresses need not differ.
        let (here, there) = (([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into());
        let (sender, receiver) = run.pair(number, flow, there, here)?;
        pairs.push(Pair { sender_due: sender.next_timeout(), sender, receiver, receiver_due: NEVER });
    }
    let mut datagrams = Datagrams::default();
    let mut arrivals: BinaryHeap<Reverse<Arrival>> = BinaryHeap::new();
    let mut order = 0;
    let mut events = 0_u32;
    let mut next_progress = PROGRESS_INTERVAL;
    let duration = run.schedule.duration;
    loop {
        let timers = pairs.iter().map(|pair| pair.sender_due.min(pair.receiver_due)).min();
        let arrival = arrivals.peek().map_or(NEVER, |first| first.0.time);
        let now = timers.unwrap_or(NEVER).min(arrival).min(network.next_event());
        for (number, pair) in pairs.iter_mut().enumerate() {
            pair.sender.record(now).map_err(|reason| of_flow(number, reason))?;
            pair.receiver.record(now).map_err(|reason| of_flow(number, reason))?;
        }
        if now > next_progress.min(duration) {
            watch.progress(next_progress.min(duration), &watched(&pairs))?;
            next_progress += PROGRESS_INTERVAL;
        }
        if now > duration {
            break;
        }
        events = events.wrapping_add(1);
        if events.is_multiple_of(LOOKS) && beginning.elapsed() > deadline {
            return Err(Halt::deadline(deadline, now));
        }
        for outcome in network.advance(now + 1)? {
            if outcome.fate == DELIVERED {
                let (path, backward) = (outcome.path as usize, outcome.backward != 0);
                arrivals.push(Reverse(Arrival { time: outcome.time, order, path, backward, id: outcome.id }));
                order += 1;
            } else {
                datagrams.take(outcome.id);
            }
        }
        while arrivals.peek().is_some_and(|first| first.0.time <= now) {
            let Some(Reverse(arrival)) = arrivals.pop() else { break };
            let Some(datagram) = datagrams.take(arrival.id) else { continue };
            let pair = &mut pairs[arrival.path];
            let (network, path) = (&network, arrival.path as u32);
            let mut host = Host { network, datagrams: &mut datagrams, path, backward: !arrival.backward };
            let told = if arrival.backward {
                pair.sender_due = now;
                pair.sender.on_datagram(now, datagram, &mut host)
            } else {
                pair.receiver_due = now;
                pair.receiver.on_datagram(now, datagram, &mut host)
            };
            told.map_err(|reason| of_flow(arrival.path, reason))?;
        }
        for (number, pair) in pairs.iter_mut().enumerate() {
            let path = number as u32;
            if pair.sender_due <= now {
                let mut host = Host { network: &network, datagrams: &mut datagrams, path, backward: false };
                let driven = pair.sender.drive(now, run, &mut host);
                driven.map_err(|reason| of_flow(number, reason))?;
                pair.sender_due = pair.sender.next_timeout().max(now + 1);
            }
            if pair.receiver_due <= now {
                let mut host = Host { network: &network, datagrams: &mut datagrams, path, backward: true };
                let driven = pair.receiver.drive(now, &mut host);
                driven.map_err(|reason| of_flow(number, reason))?;
                pair.receiver_due = pair.receiver.next_timeout().max(now + 1);
            }
        }
    }
    network.advance(duration + 1)?; // what passes at the end is recorded too
    pairs.into_iter().map(|pair| Ok(merge(pair.sender.finish()?, pair.receiver.finish()))).collect()
}

fn watched(pairs: &[Pair]) -> Vec<(u64, i64)> {
    pairs.iter().map(|pair| (pair.receiver.received(), pair.sender.smoothed_rtt())).collect()
}

fn of_flow(number: usize, reason: String) -> Halt {
    Halt::Reason(format!("flow {number}: {reason}"))
}
