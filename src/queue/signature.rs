//! Signatures of messages, in the form of Standard Webhooks 1.0: HMAC-SHA256
//! over id, time and body.
//!
//! A secret is changed without a gap by having both in the file for a while:
//! each message is signed with all of them, and a receiver that knows one of
//! them accepts it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ring::hmac;

use super::cloud_event::{Message, set};

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes a secret has.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
/// The most secrets at once.
const MOST: usize = 8;

/// What messages are signed with.
#[derive(Clone)]
pub struct Secrets(Vec<hmac::Key>);

/// The secrets are not shown.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Reads secrets, one per line, each `whsec_` and 24 to 64 bytes in base64.
    ///
    /// # Errors
    /// If a line is no secret, or there is none, or more than 8. The text of the
    /// file is not shown.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        let keys: Vec<_> = lines
            .map(|(number, line)| key(line).map_err(|fault| format!("line {}: {fault}", number + 1)))
            .collect::<Result<_, _>>()?;
        match keys.len() {
            0 => Err("must hold a secret".to_owned()),
            1..=MOST => Ok(Self(keys)),
            _ => Err(format!("must hold at most {MOST} secrets")),
        }
    }

    /// The headers that sign `message`, sent at `now`, in seconds since 1970.
    pub fn sign(&self, message: &Message, now: i64) -> HeaderMap {
        let signed =
            [message.id.as_bytes(), b".", now.to_string().as_bytes(), b".", message.body.as_bytes()].concat();
        let signatures: Vec<String> =
            self.0.iter().map(|key| format!("v1,{}", STANDARD.encode(hmac::sign(key, &signed)))).collect();
        let mut headers = HeaderMap::new();
        set(&mut headers, "webhook-id", &message.id);
        set(&mut headers, "webhook-timestamp", &now.to_string());
        set(&mut headers, "webhook-signature", &signatures.join(" "));
        headers
    }
}

fn key(line: &str) -> Result<hmac::Key, String> {
    let must = || format!("must be {PREFIX} and {} to {} bytes in base64", LENGTHS.start(), LENGTHS.end());
    let bytes = line.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok()).ok_or_else(must)?;
    match LENGTHS.contains(&bytes.len()) {
        true => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        false => Err(must()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(id: &str, body: &str) -> Message {
        Message { id: id.to_owned(), headers: HeaderMap::new(), body: body.to_owned() }
    }

    fn secret(byte: u8) -> String {
        format!("{PREFIX}{}", STANDARD.encode([byte; 32]))
    }

    /// What the libraries of Standard Webhooks test themselves with.
    #[test]
    fn a_known_message_has_the_known_signature() {
        let secrets = Secrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let message = message("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#);
        let headers = secrets.sign(&message, 1_614_265_330);
        assert_eq!(headers["webhook-id"], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_secrets_give_two_signatures() {
        let (one, two) = (secret(1), secret(2));
        let sign = |text: &str| {
            let headers = Secrets::parse(text).unwrap().sign(&message("1", "x"), 5);
            headers["webhook-signature"].to_str().unwrap().to_owned()
        };
        assert_eq!(sign(&format!("{one}\n\n{two}\n")), format!("{} {}", sign(&one), sign(&two)));
    }

    #[test]
    fn what_is_no_secret_is_refused_without_being_shown() {
        for text in ["", "  \n", "hunter2hunter2hunter2hunter2", "whsec_hunter2!", "whsec_aHVudGVyMg=="] {
            let fault = Secrets::parse(text).unwrap_err();
            assert!(fault.contains("must") && !fault.contains("hunter2"), "{fault}");
        }
        let many: String = (0..9).map(|byte| secret(byte) + "\n").collect();
        assert!(Secrets::parse(&many).unwrap_err().contains("at most 8"));
        assert_eq!(format!("{:?}", Secrets::parse(&secret(7)).unwrap()), "Secrets(1)");
    }

    proptest! {
        #[test]
        fn any_other_id_time_or_body_has_another_signature(id in "[a-z0-9.]{1,20}", now in 0_i64..1_000_000, body in ".{0,60}") {
            let secrets = Secrets::parse(&secret(3)).unwrap();
            let sign = |id: &str, now, body: &str| secrets.sign(&message(id, body), now)["webhook-signature"].clone();
            let signature = sign(&id, now, &body);
            prop_assert_ne!(&signature, &sign(&format!("{id}x"), now, &body));
            prop_assert_ne!(&signature, &sign(&id, now + 1, &body));
            prop_assert_ne!(&signature, &sign(&id, now, &format!("{body} ")));
            prop_assert_eq!(&signature, &sign(&id, now, &body));
        }
    }
}
