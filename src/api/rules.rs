//! The table of rules: every bound, pattern, default and sentence of the API.
//!
//! The CRD's schema, the admission policies and the validation in Rust all read
//! it, so that the API server and the webhook cannot come to differ. Sentences follow the API
//! conventions: they say what a value must be.

/// The name of a Task.
///
/// It becomes the name of a Service and the value of labels, both of which are
/// DNS labels. Before Kubernetes 1.36 a Service's name may not begin with a
/// digit, so a Task's may not either.
pub mod name {
    /// The most characters, those of a DNS label (RFC 1123).
    pub const MAX_LENGTH: usize = 63;
    /// What a name looks like, apart from its length.
    pub const PATTERN: &str = "^[a-z]([-a-z0-9]*[a-z0-9])?$";
    /// What is said of a name that breaks a rule.
    pub const MUST: &str = "must be at most 63 lowercase letters, digits or '-', \
        start with a letter and end with a letter or digit, because a Service of this name is created";
}

/// The number of Pods.
pub mod replicas {
    /// None: scaled to zero.
    pub const MIN: i32 = 0;
    /// The most Pods one Task may ask for.
    pub const MAX: i32 = 100;
    /// What an absent value means. An explicit 0 stays 0.
    pub const DEFAULT: i32 = 1;
}

/// The port of the container and of its Service.
pub mod port {
    /// Not a port: it stands for the default.
    pub const MIN: i32 = 0;
    /// The largest TCP port.
    pub const MAX: i32 = 65_535;
    /// What an absent value and 0 mean.
    pub const DEFAULT: i32 = 8080;
}

/// The OCI image.
///
/// The grammar is that of the distribution project's `reference` package, which
/// containerd and the kubelet read images with, less registries that are IPv6
/// literals. It is a CEL rule in the schema rather than a `pattern`, because the
/// API server prints a pattern as it stands, and a rule by its sentence.
pub mod image {
    /// What an absent value and `""` mean.
    pub const DEFAULT: &str = "nginx:alpine";
    /// The most characters of the name, that is of what precedes tag and digest.
    pub const NAME_MAX_LENGTH: usize = 255;
    /// The most characters of a tag.
    pub const TAG_MAX_LENGTH: usize = 128;
    /// The digests a container runtime can verify, with the length of each in hexadecimal.
    pub const DIGESTS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];
    /// The most characters of all: a name, a tag and the longest digest with what separates them.
    pub const MAX_LENGTH: usize = NAME_MAX_LENGTH + 1 + TAG_MAX_LENGTH + 1 + "sha512:".len() + 128;

    /// A reference, apart from the length of its name.
    pub const PATTERN: &str = concat!(
        "^",
        // The registry: domain components, then a port.
        "(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:[.][a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?/)?",
        // The path: lowercase components, joined by slashes.
        "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*",
        // The tag.
        "(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?",
        // The digest.
        "(?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?",
        "$",
    );
    /// References whose name is short enough, among those of [`PATTERN`].
    pub const NAME_LENGTH_PATTERN: &str = "^[^@]{1,255}(?::[^:/@]+)?(?:@.*)?$";
    /// Names that a runtime takes for the id of a local image.
    pub const IDENTIFIER_PATTERN: &str = "^[a-f0-9]{64}$";

    /// What is said of text that is no reference.
    pub const MUST: &str = "must be an image reference: [REGISTRY[:PORT]/]NAME[:TAG][@DIGEST] \
        with NAME in lowercase and DIGEST as sha256, sha384 or sha512";
    /// What is said of a name that is too long.
    pub const NAME_MUST: &str = "must have at most 255 characters before the tag and the digest";
    /// What is said of the id of an image.
    pub const IDENTIFIER_MUST: &str = "must not be the id of an image, 64 hexadecimal digits";

    /// References that may come to mean another image: without a digest, and without a tag or with
    /// the tag `latest`. Among those of [`PATTERN`] only.
    pub const MOVING_PATTERN: &str = "^(?:[^@]*/)?[^@/:]+(?::latest)?$";
    /// What is said of those. They are allowed, so it is a warning: at most 120 characters.
    pub const MOVING_SHOULD: &str =
        "without a tag, or with 'latest', what runs can differ from Pod to Pod; name a version";
}

/// The environment of the container.
pub mod env {
    /// The most entries.
    pub const MAX_ENTRIES: usize = 1000;
    /// The most characters of a key.
    pub const KEY_MAX_LENGTH: usize = 64;
    /// The most bytes of a value in UTF-8.
    pub const VALUE_MAX_BYTES: usize = 4096;
    /// The most bytes of the whole written as JSON.
    ///
    /// The environment is stored in a ConfigMap, whose data may have 1 MiB, and in
    /// the Task and its Deployment, which may each have 1.5 MiB (etcd's
    /// `--max-request-bytes`) with annotations (up to 256 KiB) and managed fields
    /// (for 1 000 entries up to 130 KB per field manager). 1 MiB is within
    /// all three, and 1 KiB of it is left for what stands around the environment.
    pub const MAX_BYTES: usize = (1 << 20) - (1 << 10);
    /// The bytes that JSON needs around one key and its value: four quotes, a colon and a comma.
    pub const ENTRY_OVERHEAD: usize = 6;
    /// A key, apart from its length: printable ASCII without `=`, as Pods accept since Kubernetes 1.34
    /// (KEP-4369).
    pub const KEY_PATTERN: &str = "^[ -<>-~]+$";
    /// What is said of a key that breaks a rule.
    pub const KEY_MUST: &str = "must be 1 to 64 printable ASCII characters other than '='";
    /// What is said of a value that is too long.
    pub const VALUE_MUST: &str = "must be at most 4096 bytes";

    /// What is said of an environment that is too large, before its size.
    pub fn total_must() -> String {
        format!("must be at most {MAX_BYTES} bytes as JSON, to fit into a ConfigMap and into etcd")
    }
}

/// The protection from deletion.
pub mod protection {
    /// A Task with this annotation set to `true` cannot be deleted.
    pub const ANNOTATION: &str = "task.example.io/protected";

    /// What is said to somebody who tries, after the Task's name.
    pub fn refusal() -> String {
        format!("is protected: remove its annotation {ANNOTATION} before you delete it")
    }
}

/// What the status may hold. The bounds of conditions are those of `metav1.Condition`.
pub mod status {
    /// The generation that is observed before the first pass: none.
    pub const UNOBSERVED: i64 = -1;
    /// The most conditions.
    pub const MAX_CONDITIONS: usize = 32;
    /// The most characters of a label selector as text.
    pub const SELECTOR_MAX_LENGTH: usize = 1024;
    /// The most characters of a condition's type.
    pub const TYPE_MAX_LENGTH: usize = 316;
    /// The most characters of a condition's reason.
    pub const REASON_MAX_LENGTH: usize = 1024;
    /// The most characters of a condition's message.
    pub const MESSAGE_MAX_LENGTH: usize = 32_768;
    /// The most characters of an RFC 3339 time with nanoseconds and offset.
    pub const TIME_MAX_LENGTH: usize = 35;
    /// The most changes of the phase that a sink still has to be told of.
    pub const MAX_PENDING: usize = 16;
    /// The most bytes of the reason of one of them.
    pub const PENDING_REASON_MAX_BYTES: usize = 128;
    /// The most bytes of its message.
    pub const PENDING_MESSAGE_MAX_BYTES: usize = 256;
}
