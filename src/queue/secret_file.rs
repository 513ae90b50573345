//! The file with the secrets, which may change at any time.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::signature::Secrets;

/// What is read is taken for true this long.
const FRESH: Duration = Duration::from_secs(10);
/// A larger file holds no secrets. In bytes.
const LARGEST: u64 = 16 * 1024;

/// The secrets of a file.
#[derive(Debug)]
pub struct SecretFile {
    path: PathBuf,
    current: RefCell<Current>,
}

#[derive(Debug)]
struct Current {
    secrets: Secrets,
    read: Instant,
    /// What was wrong at the last look: it is logged once.
    fault: Option<String>,
}

impl SecretFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else than secrets.
    pub fn open(path: &Path) -> Result<Self, String> {
        let secrets = read(path)?;
        let current = Current { secrets, read: Instant::now(), fault: None };
        Ok(Self { path: path.to_owned(), current: RefCell::new(current) })
    }

    /// The secrets of now. Those of before, if the file has become unreadable.
    pub fn secrets(&self) -> Secrets {
        self.secrets_at(Instant::now())
    }

    fn secrets_at(&self, now: Instant) -> Secrets {
        let mut current = self.current.borrow_mut();
        if now.duration_since(current.read) >= FRESH {
            current.read = now;
            match read(&self.path) {
                Ok(secrets) => {
                    current.secrets = secrets;
                    current.fault = None;
                }
                Err(fault) if current.fault.as_ref() != Some(&fault) => {
                    tracing::warn!(fault, "--notify-secret-file cannot be used: the secrets of before are");
                    current.fault = Some(fault);
                }
                Err(_) => {}
            }
        }
        current.secrets.clone()
    }
}

fn read(path: &Path) -> Result<Secrets, String> {
    let text = || -> std::io::Result<String> {
        if std::fs::metadata(path)?.len() > LARGEST {
            return Err(std::io::Error::other("too large for a file with secrets"));
        }
        std::fs::read_to_string(path)
    };
    let text = text().map_err(|error| format!("{}: {error}", path.display()))?;
    Secrets::parse(&text).map_err(|fault| format!("{}: {fault}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::queue::cloud_event::{Mode, message};
    use crate::queue::notice::tests::deleted;

    #[test]
    fn a_changed_file_is_taken_over_and_a_broken_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let line = |byte: char| format!("whsec_{}\n", byte.to_string().repeat(32));
        fs::write(&path, line('A')).unwrap();
        let file = SecretFile::open(&path).unwrap();
        let signature = |after: u64| {
            let secrets = file.secrets_at(Instant::now() + Duration::from_secs(after));
            secrets.sign(&message(&deleted(), Mode::Structured), 0)["webhook-signature"].clone()
        };
        let first = signature(0);
        fs::write(&path, line('B')).unwrap();
        assert_eq!(signature(1), first, "it is not read each time");
        let second = signature(20);
        assert_ne!(second, first);
        fs::write(&path, "half a secr").unwrap();
        assert_eq!(signature(40), second);
        fs::remove_file(&path).unwrap();
        assert_eq!(signature(60), second);
        fs::write(&path, line('A')).unwrap();
        assert_eq!(signature(80), first);
    }

    #[test]
    fn a_file_that_is_not_there_or_too_large_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        assert!(SecretFile::open(&path).unwrap_err().contains("secret"));
        fs::write(&path, "x".repeat(20_000)).unwrap();
        assert!(SecretFile::open(&path).unwrap_err().contains("too large"));
    }
}
