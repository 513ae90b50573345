//! Makes authorities and pairs: ECDSA on P-256, which every API server accepts.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::held::{Held, Pems, SKEW, ders};
use super::plan::Change;

/// How much longer than a pair an authority is valid.
const AUTHORITY_LIVES: u32 = 4;

/// The contents of the Secret after `change`; without `held` everything begins anew.
///
/// # Errors
/// If a name can stand in no certificate.
pub(super) fn carry_out(
    change: &Change,
    held: Option<&Held>,
    names: &BTreeSet<String>,
    validity: Duration,
    now: SystemTime,
) -> anyhow::Result<Pems> {
    let Some(Held { pems, facts }) = held else { return begin(names, validity, now) };
    let mut pems = pems.clone();
    match change {
        Change::Begin => pems = begin(names, validity, now)?,
        Change::Pair(names) => {
            let signer = Signer { certificate: &pems.authorities, key: &pems.authority_key };
            let expires = (now + validity).min(facts.authorities[0].expires);
            (pems.pair, pems.pair_key) = signer.pair(names, now, expires)?;
        }
        Change::Authority => {
            let (certificate, key) = authority(validity, now)?;
            pems.authorities.insert_str(0, &certificate);
            pems.authority_key = key;
        }
        Change::Forget => {
            let all = ders(&pems.authorities)?;
            let kept = all.iter().zip(&facts.authorities).enumerate();
            // The newest stays: what follows replaces it.
            let kept = kept.filter(|(index, (_, period))| *index == 0 || period.expires > now);
            pems.authorities = kept.map(|(_, (der, _))| pem(der)).collect();
        }
    }
    Ok(pems)
}

/// A new authority, and a pair that it signed.
///
/// # Errors
/// If a name can stand in no certificate.
pub(super) fn begin(names: &BTreeSet<String>, validity: Duration, now: SystemTime) -> anyhow::Result<Pems> {
    let (authorities, authority_key) = authority(validity, now)?;
    let signer = Signer { certificate: &authorities, key: &authority_key };
    let (pair, pair_key) = signer.pair(names, now, now + validity)?;
    Ok(Pems { authorities, authority_key, pair, pair_key })
}

fn authority(validity: Duration, now: SystemTime) -> anyhow::Result<(String, String)> {
    let mut params = CertificateParams::default();
    // Two authorities that are trusted at once are told apart by their names too.
    let made = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    params.distinguished_name.push(DnType::CommonName, format!("task-operator CA {made}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.not_before = (now - SKEW).into();
    params.not_after = (now + validity * AUTHORITY_LIVES).into();
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// An authority that signs.
struct Signer<'a> {
    /// In PEM; the first one is it.
    certificate: &'a str,
    key: &'a str,
}

impl Signer<'_> {
    fn pair(
        &self,
        names: &BTreeSet<String>,
        now: SystemTime,
        expires: SystemTime,
    ) -> anyhow::Result<(String, String)> {
        let key = KeyPair::from_pem(self.key)?;
        let issuer = Issuer::from_ca_cert_der(&ders(self.certificate)?[0], key)?;
        let names: Vec<String> = names.iter().cloned().collect();
        let mut params = CertificateParams::new(names).context("a name that no certificate can have")?;
        params.distinguished_name.push(DnType::CommonName, "task-operator webhooks");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.not_before = (now - SKEW).into();
        params.not_after = expires.into();
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
    }
}

fn pem(der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::prelude::BASE64_STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::crypto::ring;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const VALIDITY: Duration = Duration::from_secs(900);

    fn names() -> BTreeSet<String> {
        ["127.0.0.1", "web.task-system.svc"].map(str::to_owned).into()
    }

    /// Whether a client that trusts `authorities` accepts `pair` at `at`.
    fn accepts(authorities: &str, pair: &str, name: &'static str, at: SystemTime) -> bool {
        let mut roots = RootCertStore::empty();
        ders(authorities).unwrap().into_iter().for_each(|der| roots.add(der).unwrap());
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap());
        let name = ServerName::try_from(name).unwrap();
        verifier.verify_server_cert(&ders(pair).unwrap()[0], &[], &name, &[], at).is_ok()
    }

    #[test]
    fn clients_accept_the_pair_while_it_is_valid_and_for_its_names_only() {
        let now = SystemTime::now();
        let pems = begin(&names(), VALIDITY, now).unwrap();
        for name in ["127.0.0.1", "web.task-system.svc"] {
            assert!(accepts(&pems.authorities, &pems.pair, name, now));
            assert!(accepts(&pems.authorities, &pems.pair, name, now - Duration::from_secs(200)));
            assert!(!accepts(&pems.authorities, &pems.pair, name, now + Duration::from_secs(1000)));
        }
        assert!(!accepts(&pems.authorities, &pems.pair, "other.task-system.svc", now));
        assert!(!accepts(&begin(&names(), VALIDITY, now).unwrap().authorities, &pems.pair, "127.0.0.1", now));
    }

    #[test]
    fn through_a_change_of_authority_each_pair_is_accepted_by_what_is_trusted() {
        let now = SystemTime::now();
        let carry_out = |change, held: &Held| {
            let pems = super::carry_out(&change, Some(held), &names(), VALIDITY, now).unwrap();
            Held::read(pems).unwrap()
        };
        let first = Held::read(begin(&names(), VALIDITY, now).unwrap()).unwrap();
        let both = carry_out(Change::Authority, &first);
        assert!(!both.facts.by_newest && both.facts.authorities.len() == 2);
        assert_eq!(both.pems.pair, first.pems.pair);
        let second = carry_out(Change::Pair(names()), &both);
        assert!(second.facts.by_newest);
        for pair in [&first.pems.pair, &second.pems.pair] {
            assert!(accepts(&second.pems.authorities, pair, "127.0.0.1", now));
        }
        assert!(!accepts(&first.pems.authorities, &second.pems.pair, "127.0.0.1", now));

        // Nothing has expired, so nothing is forgotten; later, all but the newest.
        assert_eq!(carry_out(Change::Forget, &second).facts, second.facts);
        let later = now + VALIDITY * 9;
        let forgotten = super::carry_out(&Change::Forget, Some(&second), &names(), VALIDITY, later).unwrap();
        assert_eq!(ders(&forgotten.authorities).unwrap(), ders(&second.pems.authorities).unwrap()[..1]);
    }

    #[test]
    fn a_pair_never_outlives_its_authority() {
        let now = SystemTime::now();
        let first = Held::read(begin(&names(), VALIDITY, now).unwrap()).unwrap();
        let late = now + VALIDITY * 7 / 2;
        let pems = carry_out(&Change::Pair(names()), Some(&first), &names(), VALIDITY, late).unwrap();
        let facts = Held::read(pems).unwrap().facts;
        assert_eq!(facts.pair.expires, facts.authorities[0].expires);
    }

    #[test]
    fn what_is_no_name_is_told() {
        let wrong = ["no name\u{7f}ö".to_owned()].into();
        assert!(begin(&wrong, VALIDITY, SystemTime::now()).err().unwrap().to_string().contains("name"));
    }
}
