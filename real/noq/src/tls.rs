//! TLS 1.3 with a certificate that is made for one run and never leaves its memory.

use std::sync::Arc;

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;

pub const SERVER_NAME: &str = "quicgym.invalid";
const PROTOCOL: &[u8] = b"quicgym";

pub struct Tls {
    pub client: Arc<QuicClientConfig>,
    pub server: Arc<QuicServerConfig>,
}

impl Tls {
    pub fn new() -> Result<Self, String> {
        Self::make().map_err(|error| format!("TLS: {error}"))
    }

    fn make() -> Result<Self, Box<dyn std::error::Error>> {
        // Ed25519 and a fixed serial number: every run's handshake has packets of the same sizes.
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let mut parameters = rcgen::CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        parameters.serial_number = Some(1_u64.into());
        let certificate = parameters.self_signed(&key)?.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone())?;
        let mut client = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut server = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { client: Arc::new(client.try_into()?), server: Arc::new(server.try_into()?) })
    }
}
