//! What a Task may say: the one table that the schema and the validation share.

/// The image of a Task that names none.
pub const DEFAULT_IMAGE: &str = "nginx:alpine";
/// The port of a Task that names none.
pub const DEFAULT_PORT: i32 = 8080;
/// The replicas of a Task that names none.
pub const DEFAULT_REPLICAS: i32 = 1;

/// The most replicas.
pub const MAX_REPLICAS: i32 = 100;
/// The highest port.
pub const MAX_PORT: i32 = 65_535;
/// The longest image reference, in characters: 255 for the name, 128 for a tag, and a digest.
pub const MAX_IMAGE: u32 = 512;
/// The most variables.
pub const MAX_ENV: u32 = 1000;
/// The longest name of a variable, in characters, which are one byte each.
pub const MAX_ENV_KEY: usize = 64;
/// The longest value of a variable, in bytes.
pub const MAX_ENV_VALUE: usize = 4096;
/// The largest environment, in bytes of names and values together. It stands in
/// the Task, in the Deployment and in the ConfigMap, each below etcd's 1.5 MiB
/// and the ConfigMap below 1 MiB, with quotes, escapes and managedFields.
pub const MAX_ENV_BYTES: usize = 512 * 1024;
/// The longest name of a Task: it becomes the name of a Service.
pub const MAX_NAME: usize = 63;

/// An image as containerd reads it: a name with an optional registry (host and
/// port), an optional tag, an optional digest. Empty means the default.
///
/// The grammar is that of the distribution project's references.
pub const IMAGE_PATTERN: &str = concat!(
    r"^$|^(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]{1,5})?|\[[a-fA-F0-9:]+\](?::[0-9]{1,5})?)/)?",
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*",
    r"(?::[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})?",
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$",
);
/// What is said of an image that does not match.
pub const IMAGE_MESSAGE: &str =
    "must be an image reference such as 'nginx', 'nginx:1.27' or 'registry.example:5000/team/app@sha256:…'";

/// A DNS label that starts with a letter. From Kubernetes 1.36 on a Service
/// may start with a digit; older clusters refuse it.
pub const NAME_PATTERN: &str = "^[a-z]([-a-z0-9]*[a-z0-9])?$";
/// What is said of a name that does not match or is too long.
pub const NAME_MESSAGE: &str = "must be a name that a Service can have: at most 63 lower case letters, digits and '-', starting with a letter and ending with a letter or digit (the Task's Service gets its name)";

/// A name of a variable: printable ASCII without '='.
pub const ENV_KEY_PATTERN: &str = "^[ -<>-~]+$";
/// What is said of a name of a variable that does not match.
pub const ENV_KEY_MESSAGE: &str =
    "names must have 1 to 64 characters, printable ASCII without '=', as a Pod's environment takes them";
/// What is said of a variable whose value is too long.
pub const ENV_VALUE_MESSAGE: &str = "values must have at most 4096 bytes";
/// What is said of an environment that is too large.
pub const ENV_SIZE_MESSAGE: &str = "must have at most 524288 bytes of names and values together, so that it fits into a ConfigMap and an etcd object";
