//! The certificate of the webhooks: a pair of files that may change at any time.
//!
//! Mounted Secrets swap a symbolic link, so the files are read every few seconds
//! and compared by content, rather than watched. A new pair is taken only if it
//! is whole and its parts belong together; until then the last good one serves.
//! Connections that are open go on with what they began with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::telemetry::Metrics;

/// Between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(5);
/// What the certificate is for, in its metric.
const USAGE: &str = "webhook";

/// The pair in a directory. Clones are one.
#[derive(Clone)]
pub struct Certificate {
    directory: PathBuf,
    current: Arc<Current>,
    metrics: Metrics,
}

/// What is served now.
#[derive(Debug, Default)]
struct Current(ArcSwapOption<Pair>);

#[derive(Debug)]
struct Pair {
    key: Arc<CertifiedKey>,
    /// What it was made from.
    files: [Vec<u8>; 2],
    expires: SystemTime,
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_ref().map(|pair| pair.key.clone())
    }
}

impl Certificate {
    /// The pair `tls.crt` and `tls.key` in `directory`.
    ///
    /// # Errors
    /// If there is no whole pair: without one nothing can be served.
    pub fn load(directory: &Path, metrics: &Metrics) -> anyhow::Result<Self> {
        let certificate =
            Self { directory: directory.to_owned(), current: Arc::default(), metrics: metrics.clone() };
        certificate.refresh()?;
        Ok(certificate)
    }

    /// Looks at the files every few seconds, for as long as the process lives.
    pub fn follow(&self) {
        let certificate = self.clone();
        tokio::task::spawn_local(async move {
            let mut failing = false;
            loop {
                tokio::time::sleep(INTERVAL).await;
                match certificate.refresh() {
                    Ok(()) => failing = false,
                    // Said once: a half-written pair is whole at the next look.
                    Err(error) if !failing => {
                        failing = true;
                        tracing::warn!(
                            error = format!("{error:#}"),
                            "the new certificate cannot be used; the last one serves"
                        );
                    }
                    Err(_) => {}
                }
            }
        });
    }

    /// Takes the files over if they changed.
    fn refresh(&self) -> anyhow::Result<()> {
        let files = ["tls.crt", "tls.key"].map(|name| {
            let path = self.directory.join(name);
            std::fs::read(&path).with_context(|| format!("{}", path.display()))
        });
        let [certificate, key] = files;
        let files = match (certificate, key) {
            (Ok(certificate), Ok(key)) => [certificate, key],
            (Err(error), _) | (_, Err(error)) => {
                self.metrics.certificate_read(false);
                return Err(error);
            }
        };
        if self.current.0.load().as_ref().is_some_and(|pair| pair.files == files) {
            return Ok(());
        }
        let pair = pair(files);
        self.metrics.certificate_read(pair.is_ok());
        let pair = pair?;
        self.metrics.certificate_expires(USAGE, pair.expires);
        let expires =
            jiff::Timestamp::try_from(pair.expires).map(|time| time.to_string()).unwrap_or_default();
        tracing::info!(expires, "serving with the certificate in {}", self.directory.display());
        self.current.0.store(Some(Arc::new(pair)));
        Ok(())
    }

    /// For readiness: whether it has not expired.
    ///
    /// # Errors
    /// If it has, or there is none.
    pub fn check(&self) -> Result<(), String> {
        match self.current.0.load().as_ref() {
            None => Err("there is no certificate".to_owned()),
            Some(pair) if pair.expires <= SystemTime::now() => Err("the certificate has expired".to_owned()),
            Some(_) => Ok(()),
        }
    }

    /// TLS 1.2 and 1.3 with this certificate, HTTP/1.1 within.
    ///
    /// # Errors
    /// If the cryptography has no such versions, which it has.
    pub fn server_config(&self) -> anyhow::Result<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn pair(files: [Vec<u8>; 2]) -> anyhow::Result<Pair> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&files[0]).collect::<Result<_, _>>().context("tls.crt is no PEM")?;
    ensure!(!chain.is_empty(), "tls.crt holds no certificate");
    let key = PrivateKeyDer::from_pem_slice(&files[1]).context("tls.key holds no private key")?;
    let (_, first) = X509Certificate::from_der(&chain[0]).context("tls.crt holds no X.509 certificate")?;
    let expires = u64::try_from(first.validity().not_after.timestamp()).unwrap_or_default();
    // Also checks that the key is the certificate's.
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
        .context("tls.crt and tls.key do not belong together")?;
    Ok(Pair { key: Arc::new(key), files, expires: UNIX_EPOCH + Duration::from_secs(expires) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, certificate: &str, key: &str) {
        std::fs::write(directory.join("tls.crt"), certificate).unwrap();
        std::fs::write(directory.join("tls.key"), key).unwrap();
    }

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn the_last_whole_pair_serves_until_there_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let metrics = Metrics::new(false);
        assert!(Certificate::load(directory.path(), &metrics).is_err());
        let ((first, first_key), (second, second_key)) = (pair(), pair());
        write(directory.path(), &first, &first_key);
        let certificate = Certificate::load(directory.path(), &metrics).unwrap();
        let served = || certificate.current.0.load().as_ref().unwrap().files[0].clone();
        assert_eq!(certificate.check(), Ok(()));

        for (half, half_key) in [(&*second, &*first_key), ("", &*second_key), (&second[..99], &*second_key)] {
            write(directory.path(), half, half_key);
            assert!(certificate.refresh().is_err());
            assert_eq!(served(), first.as_bytes());
        }
        write(directory.path(), &second, &second_key);
        certificate.refresh().unwrap();
        assert_eq!(served(), second.as_bytes());
    }
}
