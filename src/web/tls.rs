//! The certificate that the webhooks are served with, which may change at any time.
//!
//! It comes from a directory, such as a mounted Secret, or from whoever calls
//! [`Certificate::take`]. A new pair is taken only if it is whole and its parts
//! belong together; until then the last good one serves. Connections that are
//! open go on with what they began with.

use std::path::Path;
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

/// What is served. Clones are one.
#[derive(Clone)]
pub struct Certificate {
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
    made: SystemTime,
    expires: SystemTime,
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_ref().map(|pair| pair.key.clone())
    }
}

impl Certificate {
    /// None yet: until there is one, no connection comes about.
    pub fn new(metrics: &Metrics) -> Self {
        Self { current: Arc::default(), metrics: metrics.clone() }
    }

    /// Serves with this pair, `tls.crt` and `tls.key` in PEM, from now on. `source` is for people.
    ///
    /// # Errors
    /// If it is not whole; then nothing changes.
    pub fn take(&self, files: [Vec<u8>; 2], source: &str) -> anyhow::Result<()> {
        if self.current.0.load().as_ref().is_some_and(|pair| pair.files == files) {
            return Ok(());
        }
        let pair = pair(files);
        self.metrics.certificate_read(pair.is_ok());
        let pair = pair?;
        self.metrics.certificate_expires(USAGE, pair.expires);
        tracing::info!(expires = date(pair.expires), "serving with the certificate in {source}");
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

    /// For people: whether it was renewed in time, which is before the last tenth of its life.
    ///
    /// # Errors
    /// If it was not.
    pub fn check_renewal(&self) -> Result<(), String> {
        let current = self.current.0.load();
        let Some(pair) = current.as_ref() else { return Ok(()) };
        let life = pair.expires.duration_since(pair.made).unwrap_or_default();
        match pair.expires.duration_since(SystemTime::now()) {
            Ok(left) if left >= life / 10 => Ok(()),
            _ => Err(format!("the certificate was not renewed; it expires at {}", date(pair.expires))),
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

/// Takes over `tls.crt` and `tls.key` in `directory`, now and whenever they
/// change, for as long as the process lives. Mounted Secrets swap a symbolic
/// link, so the files are read every few seconds and compared, rather than watched.
///
/// # Errors
/// If there is no whole pair now: without one nothing can be served.
pub fn follow_directory(certificate: &Certificate, directory: &Path) -> anyhow::Result<()> {
    refresh(certificate, directory)?;
    let (certificate, directory) = (certificate.clone(), directory.to_owned());
    tokio::task::spawn_local(async move {
        let mut failing = false;
        loop {
            tokio::time::sleep(INTERVAL).await;
            match refresh(&certificate, &directory) {
                Ok(()) => failing = false,
                // Said once: a half-written pair is whole at the next look.
                Err(error) if !failing => {
                    failing = true;
                    let error = format!("{error:#}");
                    tracing::warn!(error, "the new certificate cannot be used; the last one serves");
                }
                Err(_) => {}
            }
        }
    });
    Ok(())
}

fn refresh(certificate: &Certificate, directory: &Path) -> anyhow::Result<()> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read(&path).with_context(|| format!("{}", path.display()))
    };
    match read("tls.crt").and_then(|pair| Ok([pair, read("tls.key")?])) {
        Ok(files) => certificate.take(files, &directory.display().to_string()),
        Err(error) => {
            certificate.metrics.certificate_read(false);
            Err(error)
        }
    }
}

fn date(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default()
}

fn pair(files: [Vec<u8>; 2]) -> anyhow::Result<Pair> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&files[0]).collect::<Result<_, _>>().context("tls.crt is no PEM")?;
    ensure!(!chain.is_empty(), "tls.crt holds no certificate");
    let key = PrivateKeyDer::from_pem_slice(&files[1]).context("tls.key holds no private key")?;
    let (_, first) = X509Certificate::from_der(&chain[0]).context("tls.crt holds no X.509 certificate")?;
    let at = |seconds: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let validity = first.validity();
    let (made, expires) = (at(validity.not_before.timestamp()), at(validity.not_after.timestamp()));
    // Also checks that the key is the certificate's.
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
        .context("tls.crt and tls.key do not belong together")?;
    Ok(Pair { key: Arc::new(key), files, made, expires })
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
        let certificate = Certificate::new(&metrics);
        assert!(refresh(&certificate, directory.path()).is_err());
        assert!(certificate.check().is_err());
        let ((first, first_key), (second, second_key)) = (pair(), pair());
        write(directory.path(), &first, &first_key);
        refresh(&certificate, directory.path()).unwrap();
        let served = || certificate.current.0.load().as_ref().unwrap().files[0].clone();
        assert_eq!(certificate.check(), Ok(()));

        for (half, half_key) in [(&*second, &*first_key), ("", &*second_key), (&second[..99], &*second_key)] {
            write(directory.path(), half, half_key);
            assert!(refresh(&certificate, directory.path()).is_err());
            assert_eq!(served(), first.as_bytes());
        }
        write(directory.path(), &second, &second_key);
        refresh(&certificate, directory.path()).unwrap();
        assert_eq!(served(), second.as_bytes());
    }

    #[test]
    fn a_renewal_that_does_not_come_is_told_before_it_is_too_late() {
        let certificate = Certificate::new(&Metrics::new(false));
        let with = |days_left: u32| {
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            let now = std::time::SystemTime::now();
            let day = Duration::from_secs(86_400);
            params.not_before = (now - day * 90).into();
            params.not_after = (now + day * days_left).into();
            let key = rcgen::KeyPair::generate().unwrap();
            let made = (params.self_signed(&key).unwrap().pem(), key.serialize_pem());
            certificate.take([made.0.into_bytes(), made.1.into_bytes()], "a test").unwrap();
            (certificate.check(), certificate.check_renewal().is_ok())
        };
        assert_eq!(with(30), (Ok(()), true));
        assert_eq!(with(5), (Ok(()), false));
        assert!(with(0).0.is_err());
    }
}
