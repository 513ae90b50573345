//! Starts programs that cannot outlive this process, however it ends.
//!
//! `setpriv --pdeathsig` has the kernel send a signal to the program when its
//! parent ends. To the kernel the parent is the *thread* that started it, so
//! all programs are started by one thread that lives as long as the process: a
//! program that a finished test thread asked for goes on.
//!
//! Where setpriv cannot do that (another system than Linux, busybox), a program
//! still ends with the value that owns it, but not if the owner gets SIGKILL.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, mpsc};

/// The death signal is set only once setpriv runs. A parent that is gone by
/// then sends none, so the program starts only under the parent it belongs to.
const UNDER_PARENT: &str = r#"test "$PPID" = "$0" && exec "$@""#;

type Order = (Command, mpsc::Sender<io::Result<Child>>);

static STARTER: LazyLock<io::Result<mpsc::Sender<Order>>> = LazyLock::new(|| {
    let (orders, received) = mpsc::channel::<Order>();
    let start = move || {
        for (mut command, answer) in received {
            // Whoever asked waits for the answer.
            let _ = answer.send(command.spawn());
        }
    };
    std::thread::Builder::new().name("starts-programs".to_owned()).spawn(start)?;
    Ok(orders)
});

static HAS_DEATH_SIGNAL: LazyLock<bool> = LazyLock::new(|| {
    let probe = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
});

/// A command that runs `program`, which gets `signal` (such as `KILL`) when this
/// process ends, in a process group of its own: a Ctrl-C at the terminal reaches
/// the owner only, who stops everything in order. Start it with [`spawn`].
pub(crate) fn command(program: &Path, signal: &str) -> Command {
    let mut command;
    if *HAS_DEATH_SIGNAL {
        command = Command::new("setpriv");
        command.args(["--pdeathsig", signal, "--", "sh", "-c", UNDER_PARENT]);
        command.arg(std::process::id().to_string()).arg(program);
    } else {
        command = Command::new(program);
    }
    command.process_group(0);
    command
}

/// Starts a command that [`command`] made.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    let orders = STARTER.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let (answer, answered) = mpsc::channel();
    let gone = |_| io::Error::other("the thread that starts programs has ended");
    orders.send((command, answer)).map_err(|error| gone(error.to_string()))?;
    answered.recv().map_err(|error| gone(error.to_string()))?
}

/// Sends a signal, such as `STOP`, to a process that was started here and was not waited for yet.
pub(crate) fn signal(child: &Child, signal: &str) -> io::Result<()> {
    // The shell's own kill: a small image need not have the program.
    let sent = Command::new("sh")
        .args(["-c", r#"kill -"$0" "$1""#, signal])
        .arg(child.id().to_string())
        .stdin(Stdio::null())
        .output()?;
    if sent.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&sent.stderr).trim().to_owned()))
}
