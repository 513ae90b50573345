//! Addresses to serve on, as flags give them.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted; the kernel may have a lower limit.
const BACKLOG: i32 = 1024;
/// How long an answer may wait for a client that does not read it.
#[cfg(target_os = "linux")]
const UNREAD: std::time::Duration = std::time::Duration::from_secs(30);
const ALLOWED: &str = "must be HOST:PORT, :PORT for all addresses of the host, or 0 to turn it off; \
                       an IPv6 address is written in brackets";

/// `HOST:PORT`, `:PORT` for all addresses of the host, or `0` for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// The server is off.
    Off,
    /// All addresses, IPv6 and IPv4 where the host has both.
    Any(u16),
    /// This address.
    At(SocketAddr),
    /// The first address of this name that can be had.
    Named(String, u16),
}

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self::Off);
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::At(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(ALLOWED)?;
        let port = port.parse().map_err(|_| ALLOWED)?;
        match host {
            "" => Ok(Self::Any(port)),
            host if is_name(host) => Ok(Self::Named(host.to_owned(), port)),
            _ => Err(ALLOWED.to_owned()),
        }
    }
}

/// What can be a host's name; an IPv4 address with a mistake in it cannot.
fn is_name(host: &str) -> bool {
    host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && host.chars().any(|c| c.is_ascii_alphabetic())
}

impl BindAddress {
    /// Listens there; none if the server is off.
    pub(super) fn listen(&self) -> io::Result<Option<TcpListener>> {
        let listener = match self {
            Self::Off => return Ok(None),
            Self::At(address) => open(*address)?,
            Self::Any(port) => match open((Ipv6Addr::UNSPECIFIED, *port).into()) {
                // Hosts without IPv6 refuse it in one of several ways. An address in use is another matter.
                Err(error)
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                    ) =>
                {
                    open((Ipv4Addr::UNSPECIFIED, *port).into())?
                }
                result => result?,
            },
            Self::Named(host, port) => {
                let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    result = open(address);
                    if result.is_ok() {
                        break;
                    }
                }
                result?
            }
        };
        Ok(Some(listener))
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // Whatever the host's default is: all addresses means IPv4 too.
        socket.set_only_v6(false)?;
    }
    // Or a restart would wait for the connections of the last run to be forgotten.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    // Connections have it from the socket that accepts them.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNREAD))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Any(port) => write!(f, ":{port}"),
            Self::At(address) => write!(f, "{address}"),
            Self::Named(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn addresses_are_read_as_flags_give_them() {
        assert_eq!("0".parse(), Ok(BindAddress::Off));
        assert_eq!(":8080".parse(), Ok(BindAddress::Any(8080)));
        assert_eq!("127.0.0.1:1".parse(), Ok(BindAddress::At(([127, 0, 0, 1], 1).into())));
        assert_eq!("localhost:1".parse(), Ok(BindAddress::Named("localhost".to_owned(), 1)));
        for text in ["0", ":8080", "127.0.0.1:1", "[::1]:1", "my-host.example:80"] {
            assert_eq!(text.parse::<BindAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_address_is_refused_with_what_is_allowed() {
        for wrong in [
            "",
            "8080",
            ":",
            ":65536",
            ":-1",
            "127.0.0.1",
            "host:",
            "::1:80",
            "300.0.0.1:80",
            "a b:80",
            "a/b:80",
        ] {
            let error = wrong.parse::<BindAddress>().unwrap_err();
            assert!(error.contains("HOST:PORT"), "{wrong}: {error}");
        }
    }

    #[test]
    fn all_addresses_means_ipv4_too() {
        let listener = BindAddress::Any(0).listen().unwrap().unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_that_does_not_read_has_a_deadline() {
        let listener = "127.0.0.1:0".parse::<BindAddress>().unwrap().listen().unwrap().unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(socket2::SockRef::from(&accepted).tcp_user_timeout().unwrap(), Some(UNREAD));
    }

    #[test]
    fn a_name_is_resolved_and_an_address_in_use_is_an_error() {
        let listener = "localhost:0".parse::<BindAddress>().unwrap().listen().unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_loopback());
        let error = BindAddress::At(address).listen().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(BindAddress::Off.listen().unwrap().is_none());
    }
}
