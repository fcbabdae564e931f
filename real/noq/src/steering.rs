//! noq's congestion controller trait, served by quicgym's C interface, or by one of noq's own
//! controllers. Either way it counts what noq tells.
//!
//! The order of noq's callbacks for an ACK frame is: on_ack for each packet, on_end_acks, then the RTT
//! is updated, then on_packet_lost for each packet, on_congestion_event. Nothing says what the frame's
//! ACK Delay was, but the smoothed RTT before and after does. So what noq tells waits until the sender
//! calls `settle`, after the datagram or the timer.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

use crate::library::{self, Library};
use crate::moments::{Moments, to_ns};
use crate::packets::Packets;
use crate::plan::{Flow, NEVER, Steering};

/// RFC 9002 7.2.
fn initial_window(max_datagram_bytes: u16) -> u64 {
    let packet = u64::from(max_datagram_bytes);
    (10 * packet).min((2 * packet).max(14720))
}

enum Inner {
    Quicgym(library::Controller),
    Own(Box<dyn Controller>),
}

/// Totals so far.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub sent_bytes: u64,
    pub delivered_bytes: u64,
    pub lost_bytes: u64,
    pub lost_packets: u64,
    pub persistent_congestion: u64,
}

/// An ACK frame that the controller has not heard of yet.
struct Frame {
    time: i64,
    numbers: Vec<u64>,
    rtt_sample: Option<i64>,
    smoothed_rtt_before: i64,
    app_limited: bool,
}

/// The same for losses.
struct Losses {
    time: i64,
    is_persistent: bool,
}

struct LostPacket {
    number: u64,
    sent: i64,
}

struct State {
    moments: Moments,
    inner: Inner,
    flow: Flow,
    has_begun: bool,
    packets: Packets,
    last_sent: i64,
    handshake_bytes: u64, // in flight, which noq counts and quicgym's controllers do not
    acked: Vec<u64>,      // of the ACK frame that is being read
    newest: Option<(u64, i64)>, // of these, with when it was sent
    largest_acked: Option<u64>,
    smoothed_rtt: i64, // before that frame
    frame: Option<Frame>,
    losses: Option<Losses>,
    lost: Vec<u64>,        // of these
    late: Vec<LostPacket>, // that may yet arrive
    all_late_arrived: bool,
    probe_timeout: i64,
    counts: Counts,
    rtt_samples: Vec<[i64; 2]>,
    next_decision: i64,
    decision_lateness: Vec<i64>,
    error: Option<String>,
}

/// The state that noq and the sender share; each owns a handle to it.
#[derive(Clone)]
pub struct Steered(Arc<Mutex<State>>);

/// The state of a sender that quicgym sees.
pub struct View {
    pub window_bytes: u64,
    pub pacing_rate: f64,
    pub in_flight_bytes: u64,
    pub mode: i64,
    pub counts: Counts,
}

impl Steered {
    pub fn new(flow: &Flow, library: &Arc<Library>, moments: Moments, now: i64) -> Result<Self, String> {
        let bytes = flow.max_datagram_bytes;
        let mut next_decision = NEVER;
        let inner = match &flow.steering {
            Steering::Catalogue { name, parameters } => {
                let controller = library::Controller::of_catalogue(library, name, bytes, flow.seed, now)?;
                Inner::Quicgym(controller.with_parameters(parameters)?)
            }
            Steering::User { specification, parameters } => {
                let controller =
                    library::Controller::of_user(library, *specification, bytes, flow.seed, now)?;
                Inner::Quicgym(controller.with_parameters(parameters)?)
            }
            Steering::Policy { path } => {
                let controller = library::Controller::of_policy(library, path, bytes, flow.seed, now)?;
                next_decision = now;
                Inner::Quicgym(controller)
            }
            Steering::Own { name } => Inner::Own(make_own(name, bytes, moments.at(now))?),
        };
        if let Inner::Quicgym(controller) = &inner
            && controller.snapshot()?.wants_ect1 != 0
        {
            return Err("the controller wants ECT(1), and noq does not tell how many packets were \
                        marked; choose a controller without L4S"
                .into());
        }
        Ok(Self(Arc::new(Mutex::new(State {
            moments,
            inner,
            flow: flow.clone(),
            has_begun: false,
            packets: Packets::default(),
            last_sent: 0,
            handshake_bytes: 0,
            acked: Vec::new(),
            newest: None,
            largest_acked: None,
            smoothed_rtt: 0,
            frame: None,
            losses: None,
            lost: Vec::new(),
            late: Vec::new(),
            all_late_arrived: false,
            probe_timeout: 0,
            counts: Counts::default(),
            rtt_samples: Vec::new(),
            next_decision,
            decision_lateness: Vec::new(),
            error: None,
        }))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The handshake is complete: packets that are sent from now on are told of.
    pub fn begin(&self, now: i64, rtt: i64) {
        let mut state = self.state();
        state.has_begun = true;
        state.rtt_samples.push([now, rtt]);
        // The simulator, too, takes an application that is always ahead as one full send buffer.
        let unsent = state.flow.size_bytes.unwrap_or(1 << 61);
        state.tell(|controller| controller.set_application(unsent, 1));
        state.tell(|controller| controller.on_handshake(now, rtt));
    }

    /// The handshake is confirmed (RFC 9001 4.1.2): noq has forgotten its packets.
    pub fn on_handshake_confirmed(&self) {
        self.state().handshake_bytes = 0;
    }

    /// noq has dealt with a datagram or a timer, and its smoothed RTT is this.
    pub fn settle(&self, smoothed_rtt: i64) {
        self.state().settle(Some(smoothed_rtt));
    }

    pub fn next_decision(&self) -> i64 {
        self.state().next_decision
    }

    /// A policy decides where that is due.
    pub fn decide(&self, now: i64) {
        let mut state = self.state();
        if state.next_decision > now {
            return;
        }
        let lateness = now - state.next_decision;
        state.decision_lateness.push(lateness);
        let mut next = NEVER;
        state.tell(|controller| {
            next = controller.decide(now)?;
            Ok(())
        });
        state.next_decision = next;
    }

    pub fn sent_bytes(&self) -> u64 {
        self.state().counts.sent_bytes
    }

    /// The pacing rate of quicgym's controllers, in bytes per second; noq's own leave pacing to noq.
    pub fn pacing_rate(&self) -> Option<f64> {
        match &self.state().inner {
            Inner::Quicgym(controller) => Some(controller.pacing_rate()),
            Inner::Own(_) => None,
        }
    }

    pub fn lost_packets(&self) -> u64 {
        self.state().counts.lost_packets
    }

    /// Whether something is in flight, and nothing was sent after `time`.
    pub fn is_silent_since(&self, time: i64) -> bool {
        let state = self.state();
        state.packets.in_flight_bytes() > 0 && state.last_sent <= time
    }

    pub fn view(&self, smoothed_rtt: i64) -> Result<View, String> {
        let state = self.state();
        let (window_bytes, pacing_rate, mode) = match &state.inner {
            Inner::Quicgym(controller) => {
                let snapshot = controller.snapshot()?;
                (snapshot.window_bytes, snapshot.pacing_rate_bytes_per_s, i64::from(snapshot.mode))
            }
            Inner::Own(controller) => {
                let metrics = controller.metrics();
                // The same rule as noq's pacer: a window in four fifths of an RTT.
                let rate = metrics.pacing_rate.map_or_else(
                    || match smoothed_rtt {
                        0 => 0.0,
                        rtt => 1.25e9 * controller.window() as f64 / rtt as f64,
                    },
                    |rate| rate as f64,
                );
                (controller.window(), rate, 0)
            }
        };
        Ok(View {
            window_bytes,
            pacing_rate: if pacing_rate.is_finite() { pacing_rate } else { 0.0 },
            in_flight_bytes: state.packets.in_flight_bytes(),
            mode,
            counts: state.counts,
        })
    }

    /// The first error of the C interface.
    pub fn check(&self) -> Result<(), String> {
        self.state().error.take().map_or(Ok(()), Err)
    }

    pub fn take_rtt_samples(&self) -> Vec<[i64; 2]> {
        std::mem::take(&mut self.state().rtt_samples)
    }

    pub fn take_decision_lateness(&self) -> Vec<i64> {
        std::mem::take(&mut self.state().decision_lateness)
    }
}

fn make_own(name: &str, max_datagram_bytes: u16, now: Instant) -> Result<Box<dyn Controller>, String> {
    let window = initial_window(max_datagram_bytes);
    Ok(match name {
        "noq-newreno" => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config).build(now, max_datagram_bytes)
        }
        "noq-cubic" => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Arc::new(config).build(now, max_datagram_bytes)
        }
        "noq-bbr3" => {
            let mut config = Bbr3Config::default();
            config.initial_window(window);
            Arc::new(config).build(now, max_datagram_bytes)
        }
        _ => return Err(format!("noq has no controller {name:?}")),
    })
}

impl State {
    /// Calls quicgym's controller, where it is one. noq's callbacks cannot fail: the first error waits for
    /// `Steered::check`.
    fn tell(&mut self, call: impl FnOnce(&mut library::Controller) -> Result<(), String>) {
        if let Inner::Quicgym(controller) = &mut self.inner
            && let Err(error) = call(controller)
        {
            self.error.get_or_insert(error);
        }
    }

    fn own(&mut self) -> Option<&mut dyn Controller> {
        match &mut self.inner {
            Inner::Own(controller) => Some(controller.as_mut()),
            Inner::Quicgym(_) => None,
        }
    }

    fn on_acked(&mut self, now: i64, app_limited: bool) {
        let Some((number, sent)) = self.newest.take() else { return };
        self.settle(None); // of another frame in the same datagram
        if std::mem::take(&mut self.all_late_arrived) {
            self.on_late_arrivals(now);
        }
        let mut numbers = std::mem::take(&mut self.acked);
        numbers.sort_unstable();
        // RFC 9002 5.1: a sample only from the largest acknowledged packet.
        let rtt_sample = self.largest_acked.is_none_or(|largest| largest < number).then_some(now - sent);
        if let Some(sample) = rtt_sample {
            self.largest_acked = Some(number);
            self.rtt_samples.push([now, sample]);
        }
        let smoothed_rtt_before = self.smoothed_rtt;
        self.frame = Some(Frame { time: now, numbers, rtt_sample, smoothed_rtt_before, app_limited });
    }

    fn on_losses(&mut self, now: i64, is_persistent: bool) {
        self.counts.persistent_congestion += u64::from(is_persistent);
        self.losses = Some(Losses { time: now, is_persistent });
        // noq forgets lost packets after two probe timeouts; they count as lost for good.
        let oldest = now - 2 * self.probe_timeout;
        self.late.retain(|packet| packet.sent >= oldest);
    }

    /// The controller hears what has waited. None: the smoothed RTT is not known, and the ACK Delay counts as 0.
    fn settle(&mut self, smoothed_rtt: Option<i64>) {
        if let Some(mut frame) = self.frame.take() {
            let delay = match (frame.rtt_sample, smoothed_rtt) {
                (Some(sample), Some(after)) => ack_delay(sample, frame.smoothed_rtt_before, after),
                _ => 0,
            };
            if frame.app_limited {
                self.tell(|controller| controller.on_app_limited(frame.time));
            }
            self.tell(|controller| controller.on_ack(frame.time, delay, &frame.numbers));
            frame.numbers.clear();
            if self.acked.is_empty() {
                self.acked = frame.numbers; // its room is used again
            }
        }
        if let Some(losses) = self.losses.take() {
            let mut lost = std::mem::take(&mut self.lost);
            if !lost.is_empty() {
                self.tell(|controller| controller.on_loss(losses.time, &lost));
            }
            if losses.is_persistent {
                self.tell(|controller| controller.on_persistent_congestion(losses.time));
            }
            lost.clear();
            self.lost = lost;
        }
    }

    /// All lost packets that noq remembers have arrived.
    fn on_late_arrivals(&mut self, now: i64) {
        let mut numbers: Vec<u64> = self.late.drain(..).map(|packet| packet.number).collect();
        numbers.sort_unstable();
        if !numbers.is_empty() {
            self.tell(|controller| controller.on_ack(now, 0, &numbers));
        }
    }
}

/// RFC 9002 5.3: smoothed_rtt = 7/8 * smoothed_rtt + 1/8 * adjusted_rtt, with adjusted_rtt = rtt_sample - ack_delay.
/// noq divides by 8 without remainder, so that what is below 8 ns is none.
fn ack_delay(sample: i64, before: i64, after: i64) -> i64 {
    let delay = sample - (8 * after - 7 * before);
    if delay < 8 { 0 } else { delay }
}

impl fmt::Debug for Steered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Steered")
    }
}

impl Controller for Steered {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        if let Some(own) = self.state().own() {
            own.on_sent(now, bytes, largest_pn);
        }
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let mut state = self.state();
        if let Some(own) = state.own() {
            own.on_packet_sent(now, bytes, pn);
        }
        let time = state.moments.of(now);
        if !state.has_begun || !state.packets.on_sent(pn, time, bytes) {
            state.handshake_bytes += u64::from(bytes);
            return;
        }
        state.last_sent = time;
        state.counts.sent_bytes += u64::from(bytes);
        state.tell(|controller| controller.on_sent(time, pn, bytes));
    }

    fn on_cwnd_limited(&mut self) {
        if let Some(own) = self.state().own() {
            own.on_cwnd_limited();
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut state = self.state();
        if let Some(own) = state.own() {
            own.on_ack(now, sent, bytes, pn, app_limited, rtt);
        }
        // noq keeps the variation to itself: half the RTT is what it begins with.
        state.probe_timeout = to_ns(rtt.conservative()) * 3 / 2;
        state.smoothed_rtt = to_ns(rtt.get());
        let sent = state.moments.of(sent);
        let Some((sent, bytes)) = state.packets.take(pn, Some(sent)) else {
            state.handshake_bytes = state.handshake_bytes.saturating_sub(bytes);
            return;
        };
        state.newest = state.newest.max(Some((pn, sent)));
        state.acked.push(pn);
        state.counts.delivered_bytes += u64::from(bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let mut state = self.state();
        if let Some(own) = state.own() {
            own.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        }
        let now = state.moments.of(now);
        state.on_acked(now, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let mut state = self.state();
        if let Some(own) = state.own() {
            own.on_congestion_event(now, sent, is_persistent_congestion, is_ecn, lost_bytes, largest_lost_pn);
        }
        let now = state.moments.of(now);
        state.on_losses(now, is_persistent_congestion);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let mut state = self.state();
        if let Some(own) = state.own() {
            own.on_packet_lost(lost_bytes, pn, now);
        }
        let Some((sent, bytes)) = state.packets.take(pn, None) else {
            state.handshake_bytes = state.handshake_bytes.saturating_sub(u64::from(lost_bytes));
            return;
        };
        state.counts.lost_packets += 1;
        state.counts.lost_bytes += u64::from(bytes);
        state.lost.push(pn);
        state.late.push(LostPacket { number: pn, sent });
    }

    fn on_spurious_congestion_event(&mut self) {
        let mut state = self.state();
        if let Some(own) = state.own() {
            own.on_spurious_congestion_event();
        }
        // noq does not say when this is: the acknowledgements of the same frame do, which follow.
        state.all_late_arrived = true;
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        if let Some(own) = self.state().own() {
            own.on_mtu_update(new_mtu);
        }
    }

    fn on_ack_frequency_update(
        &mut self,
        ack_eliciting_threshold: u64,
        requested_max_ack_delay: std::time::Duration,
    ) {
        if let Some(own) = self.state().own() {
            own.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
        }
    }

    fn window(&self) -> u64 {
        let state = self.state();
        match &state.inner {
            Inner::Quicgym(controller) => controller.window_bytes() + state.handshake_bytes,
            Inner::Own(controller) => controller.window(),
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        let state = self.state();
        match &state.inner {
            Inner::Quicgym(controller) => {
                let mut metrics = ControllerMetrics::default();
                metrics.congestion_window = controller.window_bytes() + state.handshake_bytes;
                metrics.pacing_rate = Some(controller.pacing_rate() as u64);
                metrics
            }
            Inner::Own(controller) => controller.metrics(),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        match &self.state().inner {
            Inner::Quicgym(controller) => controller.window_bytes(),
            Inner::Own(controller) => controller.initial_window(),
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ControllerFactory for Steered {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        self.clone_box()
    }
}
