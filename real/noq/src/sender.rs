//! The sending side of a flow: the client that opens the connection, its controller and its application.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use noq_proto::{ConnectionError, Event};

use crate::content::Upload;
use crate::pacer::Pacer;
use crate::peer::{Outlet, Peer, sender_transport};
use crate::plan::{Flow, NEVER};
use crate::qlog::Qlog;
use crate::rows::{Row, Series};
use crate::run::Run;
use crate::steering::Steered;

#[derive(PartialEq)]
enum Phase {
    Idle,
    Connecting,
    Connected,
    Closed,
}

pub struct Sender {
    peer: Peer,
    flow: Flow,
    qlog: Option<Arc<Qlog>>,
    phase: Phase,
    steered: Option<Steered>,
    upload: Upload,
    pacer: Pacer,
    series: Series<Row>,
    probe_timeouts: u64,
}

pub struct SenderRecord {
    pub rows: Vec<Row>,
    pub rtt_samples: Vec<[i64; 2]>,
    pub decision_lateness: Vec<i64>,
    pub probe_timeouts: u64,
    pub persistent_congestion: u64,
}

impl Sender {
    pub fn new(flow: &Flow, run: &Run, peer: Peer, qlog: Option<Arc<Qlog>>) -> Self {
        Self {
            peer,
            flow: flow.clone(),
            qlog,
            phase: Phase::Idle,
            steered: None,
            upload: Upload::new(run.content.clone(), flow.size_bytes),
            pacer: Pacer::new(run.late_credit),
            series: Series::new(run.schedule),
            probe_timeouts: 0,
        }
    }

    pub fn start(&self) -> i64 {
        self.flow.start
    }

    /// Whether its peer has something to say.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Connecting | Phase::Connected)
    }

    pub fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    /// When there is something to do.
    pub fn next_timeout(&self) -> i64 {
        let decision = self.steered.as_ref().map_or(NEVER, Steered::next_decision);
        match self.phase {
            Phase::Idle => self.flow.start,
            Phase::Closed => NEVER,
            _ => {
                let paced = self.pacer.next_send().unwrap_or(NEVER);
                self.peer.next_timeout().min(decision).min(self.flow.stop).min(paced)
            }
        }
    }

    pub fn on_datagram(
        &mut self,
        now: i64,
        datagram: BytesMut,
        outlet: &mut impl Outlet,
    ) -> Result<(), String> {
        match self.phase {
            Phase::Idle | Phase::Closed => Ok(()),
            _ => {
                self.peer.on_datagram(now, datagram, outlet)?;
                self.settle();
                Ok(())
            }
        }
    }

    fn settle(&self) {
        if let Some(steered) = &self.steered {
            steered.settle(self.peer.smoothed_rtt());
        }
    }

    /// Does what is due, and sends what may be sent.
    pub fn drive(&mut self, mut now: i64, run: &Run, outlet: &mut impl Outlet) -> Result<(), String> {
        if self.phase == Phase::Closed {
            return Ok(());
        }
        if self.phase == Phase::Idle {
            if now < self.flow.start || now >= self.flow.stop {
                return Ok(());
            }
            self.connect(now, run)?;
        }
        self.on_timeout(now);
        while let Some(event) = self.peer.next_event() {
            match event {
                Event::Connected => {
                    // The handshake's last packets leave first: those after them are the controller's.
                    self.peer.transmit(now, outlet)?;
                    self.peer.set_connected();
                    self.phase = Phase::Connected;
                    if let Some(steered) = &self.steered {
                        steered.begin(now, self.peer.smoothed_rtt());
                    }
                    now += 1; // acknowledgements tell them apart by when they were sent
                }
                Event::HandshakeConfirmed => {
                    if let Some(steered) = &self.steered {
                        steered.on_handshake_confirmed();
                    }
                }
                Event::ConnectionLost { reason } => return Err(lost(&reason)),
                _ => {}
            }
        }
        if now >= self.flow.stop {
            return self.close(now, outlet);
        }
        let Some(steered) = self.steered.clone() else { return Ok(()) };
        steered.decide(now);
        if self.phase != Phase::Connected {
            self.peer.transmit(now, outlet)?;
            return steered.check();
        }
        if let Some(connection) = self.peer.connection() {
            self.upload.write(connection, steered.sent_bytes())?;
            if self.upload.is_complete() && connection.streams().send_streams() == 0 {
                return self.close(now, outlet); // all is acknowledged
            }
        }
        self.send(now, &steered, outlet)?;
        steered.check()
    }

    fn send(&mut self, now: i64, steered: &Steered, outlet: &mut impl Outlet) -> Result<(), String> {
        loop {
            let Some(rate) = steered.pacing_rate() else { return self.peer.transmit(now, outlet) };
            if self.pacer.holds_back(now) {
                return Ok(());
            }
            let before = steered.sent_bytes();
            if !self.peer.transmit_one(now, outlet)? {
                self.pacer.on_nothing_to_send();
                return Ok(());
            }
            // Acknowledgements alone are not paced.
            self.pacer.on_sent(now, steered.sent_bytes() - before, rate);
        }
    }

    /// noq does not tell of a probe timeout (RFC 9002 6.2). One is a timer that expires an RTT after the last packet,
    /// with something in flight, and declares nothing lost: others expire sooner.
    fn on_timeout(&mut self, now: i64) {
        if self.peer.next_timeout() > now {
            return;
        }
        let lost_before = self.steered.as_ref().map_or(0, Steered::lost_packets);
        self.peer.on_timeout(now);
        self.settle();
        let Some(steered) = &self.steered else { return };
        let rtt = self.peer.smoothed_rtt();
        if rtt > 0 && steered.is_silent_since(now - rtt) && steered.lost_packets() == lost_before {
            self.probe_timeouts += 1;
        }
    }

    fn connect(&mut self, now: i64, run: &Run) -> Result<(), String> {
        let steered = Steered::new(&self.flow, &run.library, run.moments, now)?;
        let mut transport = sender_transport(&self.flow, self.qlog.take());
        transport.congestion_controller_factory(Arc::new(steered.clone()));
        self.peer.connect(now, &run.tls, transport)?;
        self.steered = Some(steered);
        self.phase = Phase::Connecting;
        Ok(())
    }

    fn close(&mut self, now: i64, outlet: &mut impl Outlet) -> Result<(), String> {
        self.phase = Phase::Closed;
        let instant = self.instant(now);
        if let Some(connection) = self.peer.connection() {
            connection.close(instant, 0_u32.into(), Bytes::new());
        }
        self.peer.transmit(now, outlet)
    }

    fn instant(&self, now: i64) -> std::time::Instant {
        self.peer.moments().at(now)
    }

    /// The rows that are due before `end`.
    pub fn record(&mut self, end: i64) -> Result<(), String> {
        if self.series.next() >= end {
            return Ok(());
        }
        let smoothed_rtt = self.peer.smoothed_rtt();
        let view = self.steered.as_ref().map(|steered| steered.view(smoothed_rtt)).transpose()?;
        self.series.advance(end, |time| {
            let Some(view) = &view else { return Ok(Row { time, ..Row::default() }) };
            Ok(Row {
                time,
                window_bytes: view.window_bytes,
                pacing_rate: view.pacing_rate,
                smoothed_rtt,
                in_flight_bytes: view.in_flight_bytes,
                delivered_bytes: view.counts.delivered_bytes,
                lost_bytes: view.counts.lost_bytes,
                lost_packets: view.counts.lost_packets,
                goodput_bytes: 0, // the receiver's
                mode: view.mode,
            })
        })
    }

    pub fn smoothed_rtt(&self) -> i64 {
        self.peer.smoothed_rtt()
    }

    pub fn finish(self) -> Result<SenderRecord, String> {
        let rows = self.series.take();
        let Some(steered) = self.steered else {
            return Ok(SenderRecord {
                rows,
                rtt_samples: Vec::new(),
                decision_lateness: Vec::new(),
                probe_timeouts: 0,
                persistent_congestion: 0,
            });
        };
        Ok(SenderRecord {
            rows,
            rtt_samples: steered.take_rtt_samples(),
            decision_lateness: steered.take_decision_lateness(),
            probe_timeouts: self.probe_timeouts,
            persistent_congestion: steered.view(0)?.counts.persistent_congestion,
        })
    }
}

/// Why a connection ended, for a person.
pub fn lost(reason: &ConnectionError) -> String {
    match reason {
        ConnectionError::ConnectionClosed(close) => format!("the peer closed the connection: {close}"),
        ConnectionError::ApplicationClosed(close) => format!("the peer closed the connection: {close}"),
        other => format!("the connection ended: {other}"),
    }
}
