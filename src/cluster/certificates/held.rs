//! What the Secret holds, read and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use k8s_openapi::ByteString;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How much earlier than it was made a certificate is valid: what the clocks of
/// two machines may differ by.
pub(super) const SKEW: Duration = Duration::from_secs(300);

/// The four entries of the Secret, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pems {
    /// `ca.crt`: the authorities to trust, the newest first.
    pub authorities: String,
    /// `ca.key`: the key of the newest.
    pub authority_key: String,
    /// `tls.crt`: what is served.
    pub pair: String,
    /// `tls.key`: its key.
    pub pair_key: String,
}

/// From when to when something serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    /// When it was made.
    pub made: SystemTime,
    /// From when on nobody accepts it.
    pub expires: SystemTime,
}

impl Period {
    /// How long that is from when it was made.
    pub(super) fn life(&self) -> Duration {
        self.expires.duration_since(self.made).unwrap_or_default()
    }

    /// What is left of it.
    pub(super) fn left(&self, now: SystemTime) -> Duration {
        self.expires.duration_since(now).unwrap_or_default()
    }
}

/// What can be known of the contents without using them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// The authorities, the newest first; never empty.
    pub authorities: Vec<Period>,
    /// The names in the pair.
    pub names: BTreeSet<String>,
    /// The pair.
    pub pair: Period,
    /// Whether the newest authority signed the pair.
    pub by_newest: bool,
}

/// Contents that belong together.
#[derive(Clone)]
pub(super) struct Held {
    /// The contents.
    pub pems: Pems,
    /// What they say.
    pub facts: Facts,
}

impl Pems {
    /// The entries of a Secret; none if one is missing or is no text.
    pub(super) fn of(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let entry = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        Some(Self {
            authorities: entry("ca.crt")?,
            authority_key: entry("ca.key")?,
            pair: entry("tls.crt")?,
            pair_key: entry("tls.key")?,
        })
    }

    /// As the data of a Secret.
    pub(super) fn data(&self) -> [(&'static str, &str); 4] {
        [
            ("ca.crt", &self.authorities),
            ("ca.key", &self.authority_key),
            ("tls.crt", &self.pair),
            ("tls.key", &self.pair_key),
        ]
    }
}

impl Held {
    /// Judges `pems`.
    ///
    /// # Errors
    /// If a part cannot be read, or does not belong to the others.
    pub(super) fn read(pems: Pems) -> anyhow::Result<Self> {
        let authorities = ders(&pems.authorities).context("ca.crt")?;
        let pair = ders(&pems.pair).context("tls.crt")?;
        let (authority_key, pair_key) =
            (key(&pems.authority_key, "ca.key")?, key(&pems.pair_key, "tls.key")?);
        let authorities = authorities.iter().map(|der| parse(der)).collect::<Result<Vec<_>, _>>();
        let authorities = authorities.context("ca.crt")?;
        let pair = parse(&pair[0]).context("tls.crt")?;

        let belongs = |key: &KeyPair, certificate: &X509Certificate<'_>| {
            key.subject_public_key_info() == certificate.public_key().raw
        };
        ensure!(belongs(&authority_key, &authorities[0]), "ca.key is not the key of the first in ca.crt");
        ensure!(belongs(&pair_key, &pair), "tls.key is not the key of tls.crt");
        let signed_by = |authority: &X509Certificate<'_>| {
            pair.issuer() == authority.subject()
                && pair.verify_signature(Some(authority.public_key())).is_ok()
        };
        let Some(signer) = authorities.iter().position(signed_by) else {
            bail!("none in ca.crt signed tls.crt");
        };
        let facts = Facts {
            authorities: authorities.iter().map(period).collect(),
            names: names(&pair)?,
            pair: period(&pair),
            by_newest: signer == 0,
        };
        Ok(Self { pems, facts })
    }
}

/// The certificates in `pem`, at least one.
pub(super) fn ders(pem: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let ders: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>()?;
    ensure!(!ders.is_empty(), "holds no certificate");
    Ok(ders)
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> anyhow::Result<X509Certificate<'a>> {
    Ok(X509Certificate::from_der(der).context("holds something that is no X.509 certificate")?.1)
}

fn key(pem: &str, name: &'static str) -> anyhow::Result<KeyPair> {
    // What the error quotes must not be a part of the key.
    KeyPair::from_pem(pem).map_err(|_| anyhow::anyhow!("{name} holds no private key"))
}

fn period(certificate: &X509Certificate<'_>) -> Period {
    let at = |seconds: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let validity = certificate.validity();
    Period { made: at(validity.not_before.timestamp()) + SKEW, expires: at(validity.not_after.timestamp()) }
}

fn names(certificate: &X509Certificate<'_>) -> anyhow::Result<BTreeSet<String>> {
    let Some(names) = certificate.subject_alternative_name().context("tls.crt")? else {
        return Ok(BTreeSet::new());
    };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    };
    Ok(names.value.general_names.iter().filter_map(name).collect())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::super::issue;
    use super::*;

    fn pems() -> Pems {
        let names = ["127.0.0.1", "a.b.svc", "::1"].map(str::to_owned).into();
        issue::begin(&names, Duration::from_secs(3600), SystemTime::now()).unwrap()
    }

    #[test]
    fn what_was_issued_is_read_back() {
        let before = SystemTime::now() - Duration::from_secs(2);
        let held = Held::read(pems()).unwrap();
        let facts = held.facts;
        assert_eq!(facts.names, ["127.0.0.1", "::1", "a.b.svc"].map(str::to_owned).into());
        assert!(facts.by_newest && facts.authorities.len() == 1);
        assert!(facts.pair.made >= before && facts.pair.made <= SystemTime::now());
        assert_eq!(facts.pair.life(), Duration::from_secs(3600));
        assert_eq!(facts.authorities[0].life(), Duration::from_secs(4 * 3600));
    }

    #[test]
    fn parts_that_do_not_belong_together_are_told_without_a_word_of_the_keys() {
        let (one, other) = (pems(), pems());
        let secret = one.pair_key.lines().nth(1).unwrap().to_owned();
        let wrong = |change: &dyn Fn(&mut Pems)| {
            let mut pems = one.clone();
            change(&mut pems);
            let error = format!("{:#}", Held::read(pems).err().unwrap());
            assert!(!error.contains(&secret[..20]), "{error}");
            error
        };
        assert!(wrong(&|pems| pems.authority_key.clone_from(&other.authority_key)).contains("ca.key"));
        assert!(wrong(&|pems| pems.pair_key.clone_from(&other.pair_key)).contains("tls.key"));
        assert!(wrong(&|pems| pems.pair_key.truncate(60)).contains("tls.key holds no"));
        assert!(wrong(&|pems| pems.pair = "x".to_owned()).contains("tls.crt"));
        let strange = wrong(&|pems| {
            pems.pair.clone_from(&other.pair);
            pems.pair_key.clone_from(&other.pair_key);
        });
        assert!(strange.contains("signed tls.crt"), "{strange}");
    }
}
