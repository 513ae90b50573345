//! Addresses to serve on, as flags give them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// `HOST:PORT`, `:PORT` for all addresses of the host, or `0` for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// The server is off.
    Off,
    /// All addresses, IPv6 and IPv4 where the host has both.
    Any(u16),
    /// This one.
    On(SocketAddr),
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed =
            || "must be HOST:PORT with an IP address as HOST, :PORT, or 0 to turn it off".to_owned();
        if text == "0" {
            return Ok(Self::Off);
        }
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(Self::Any).map_err(|_| allowed());
        }
        let text = text
            .strip_prefix("localhost:")
            .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        text.parse().map(Self::On).map_err(|_| allowed())
    }
}

impl BindAddress {
    /// The addresses to try, the first that can be had is taken.
    pub(super) fn candidates(&self) -> Vec<SocketAddr> {
        match self {
            Self::Off => Vec::new(),
            Self::Any(port) => vec![
                SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), *port),
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), *port),
            ],
            Self::On(address) => vec![*address],
        }
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Any(port) => write!(f, ":{port}"),
            Self::On(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_flags_give_them() {
        assert_eq!("0".parse(), Ok(BindAddress::Off));
        assert_eq!(":8080".parse(), Ok(BindAddress::Any(8080)));
        assert_eq!("localhost:1".parse(), Ok(BindAddress::On(([127, 0, 0, 1], 1).into())));
        assert_eq!("[::1]:1".parse::<BindAddress>().unwrap().to_string(), "[::1]:1");
        for wrong in ["", "8080", ":", ":65536", "host:80", "127.0.0.1"] {
            assert!(wrong.parse::<BindAddress>().is_err(), "{wrong}");
        }
    }
}
