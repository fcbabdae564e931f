//! One noq endpoint with its one connection: datagrams and times in, datagrams and the next time out.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use noq_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    Event, FourTuple, PathId, RandomConnectionIdGenerator, ServerConfig, TransportConfig,
};

use crate::content::{STREAM_BYTES, varint};
use crate::moments::{Moments, to_ns};
use crate::plan::{Flow, NEVER};
use crate::qlog::Qlog;
use crate::run::Run;
use crate::tls::{SERVER_NAME, Tls};

/// RFC 9000 18.2.
const DEFAULT_MAX_ACK_DELAY: i64 = 25_000_000;
const DEFAULT_THRESHOLD: u64 = 1;
const CONNECTION_ID_BYTES: usize = 8;
const MOST_STREAMS: u32 = 4096;

/// Takes the datagrams that are sent, each with its time.
pub trait Outlet {
    fn send(&mut self, time: i64, datagram: BytesMut) -> Result<(), String>;
}

pub struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    moments: Moments,
    remote: SocketAddr,
    max_datagram_bytes: u16,
    is_connected: bool,
    buffer: Vec<u8>,
}

/// The state that both sides have in common.
fn transport(flow: &Flow, qlog: Option<Arc<Qlog>>) -> TransportConfig {
    let mut config = TransportConfig::default();
    let window = varint(flow.flow_control_window_bytes);
    config
        .initial_mtu(flow.max_datagram_bytes)
        .min_mtu(flow.max_datagram_bytes) // no fall back below it after losses
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .max_concurrent_uni_streams(MOST_STREAMS.into())
        .receive_window(window)
        .stream_receive_window(window.min(varint(2 * STREAM_BYTES)))
        .send_window(u64::MAX >> 2)
        .send_fairness(false)
        .max_idle_timeout(None); // an outage may last
    if let Some(qlog) = qlog {
        config.qlog_factory(qlog);
    }
    config
}

/// The sender's, which asks the receiver to acknowledge as the scenario says where that is not the default.
pub fn sender_transport(flow: &Flow, qlog: Option<Arc<Qlog>>) -> TransportConfig {
    let mut config = transport(flow, qlog);
    if flow.ack_eliciting_threshold != DEFAULT_THRESHOLD || flow.max_ack_delay != DEFAULT_MAX_ACK_DELAY {
        let mut frequency = AckFrequencyConfig::default();
        frequency
            .ack_eliciting_threshold(varint(flow.ack_eliciting_threshold))
            .max_ack_delay(Some(Duration::from_nanos(flow.max_ack_delay.unsigned_abs())))
            .reordering_threshold(varint(1));
        config.ack_frequency_config(Some(frequency));
    }
    config
}

impl Peer {
    fn new(
        flow: &Flow,
        server: Option<ServerConfig>,
        moments: Moments,
        remote: SocketAddr,
    ) -> Result<Self, String> {
        let mut config = EndpointConfig::default();
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&flow.seed.to_le_bytes());
        seed[8] = u8::from(server.is_some());
        config
            .rng_seed(Some(seed))
            .grease_quic_bit(false)
            .cid_generator(Arc::new(|| Box::new(RandomConnectionIdGenerator::new(CONNECTION_ID_BYTES))));
        config.max_udp_payload_size(flow.max_datagram_bytes).map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), false),
            connection: None,
            moments,
            remote,
            max_datagram_bytes: flow.max_datagram_bytes,
            is_connected: false,
            buffer: Vec::new(),
        })
    }

    pub fn client(flow: &Flow, moments: Moments, remote: SocketAddr) -> Result<Self, String> {
        Self::new(flow, None, moments, remote)
    }

    pub fn server(
        flow: &Flow,
        run: &Run,
        qlog: Option<Arc<Qlog>>,
        remote: SocketAddr,
    ) -> Result<Self, String> {
        let mut config = ServerConfig::with_crypto(run.tls.server.clone());
        config.transport_config(Arc::new(transport(flow, qlog))).migration(false);
        Self::new(flow, Some(config), run.moments, remote)
    }

    pub fn connect(&mut self, now: i64, tls: &Tls, transport: TransportConfig) -> Result<(), String> {
        let mut config = ClientConfig::new(tls.client.clone());
        config.transport_config(Arc::new(transport));
        let now = self.moments.at(now);
        let made = self.endpoint.connect(now, config, self.remote, SERVER_NAME);
        self.connection = Some(made.map_err(|error| error.to_string())?);
        Ok(())
    }

    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    pub fn moments(&self) -> Moments {
        self.moments
    }

    pub fn set_connected(&mut self) {
        self.is_connected = true;
    }

    /// In ns; 0 before the first sample.
    pub fn smoothed_rtt(&self) -> i64 {
        match &self.connection {
            Some((_, connection)) if self.is_connected => connection.rtt(PathId::ZERO).map_or(0, to_ns),
            _ => 0,
        }
    }

    /// A datagram from the network. What is no packet of the connection changes nothing (RFC 9000 5.2).
    pub fn on_datagram(
        &mut self,
        now: i64,
        datagram: BytesMut,
        outlet: &mut impl Outlet,
    ) -> Result<(), String> {
        self.buffer.clear();
        let path = FourTuple::new(self.remote, None);
        let instant = self.moments.at(now);
        match self.endpoint.handle(instant, path, None, datagram, &mut self.buffer) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = self.connection() {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.buffer.clear();
                if self.connection.is_some() {
                    self.endpoint.ignore(incoming);
                    return Ok(());
                }
                let accepted = self.endpoint.accept(incoming, instant, &mut self.buffer, None);
                self.connection = Some(accepted.map_err(|error| error.cause.to_string())?);
            }
            Some(DatagramEvent::Response(_)) => {
                outlet.send(now, BytesMut::from(&self.buffer[..]))?;
            }
        }
        Ok(())
    }

    pub fn next_timeout(&self) -> i64 {
        let timeout = self.connection.as_ref().and_then(|(_, connection)| connection.poll_timeout());
        timeout.map_or(NEVER, |instant| self.moments.of(instant))
    }

    pub fn on_timeout(&mut self, now: i64) {
        let instant = self.moments.at(now);
        if self.next_timeout() <= now
            && let Some(connection) = self.connection()
        {
            connection.handle_timeout(instant);
        }
    }

    pub fn next_event(&mut self) -> Option<Event> {
        if let Some((handle, connection)) = &mut self.connection {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            return connection.poll();
        }
        None
    }

    /// Sends what may be sent now.
    pub fn transmit(&mut self, now: i64, outlet: &mut impl Outlet) -> Result<(), String> {
        while self.transmit_one(now, outlet)? {}
        Ok(())
    }

    /// Sends a datagram, if there is one that may be sent.
    pub fn transmit_one(&mut self, now: i64, outlet: &mut impl Outlet) -> Result<bool, String> {
        let instant = self.moments.at(now);
        let Some((_, connection)) = &mut self.connection else { return Ok(false) };
        self.buffer.clear();
        if connection.poll_transmit(instant, NonZeroUsize::MIN, &mut self.buffer).is_none() {
            return Ok(false);
        }
        debug_assert!(self.buffer.len() <= usize::from(self.max_datagram_bytes));
        outlet.send(now, BytesMut::from(&self.buffer[..]))?;
        Ok(true)
    }
}
