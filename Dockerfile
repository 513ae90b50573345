# syntax=docker/dockerfile:1
# The image of the operator, for amd64 and arm64: `make docker-build IMG=…`. Nothing is in it but
# the program and the libraries that it is linked to. hack/image-check runs its steps without an engine.
FROM rust:1.95-bookworm AS build
ENV CARGO_TARGET_DIR=/target OUT=/out
WORKDIR /src
# It writes the list of dependencies into the program, for scanners to read.
RUN cargo install --locked --version 0.7.7 cargo-auditable
COPY . .
RUN cargo auditable build --release --locked --bin task-operator
RUN hack/image-root "$CARGO_TARGET_DIR/release/task-operator" "$OUT"

# `docker build --target debug --output .` gives the symbols, for a backtrace or a profile.
FROM scratch AS debug
COPY --from=build /out/debug /

FROM scratch
LABEL org.opencontainers.image.title="Task Operator" \
      org.opencontainers.image.description="Turns a Task into a running application" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/root /
USER 65532:65532
EXPOSE 8080 8081 9443
ENTRYPOINT ["/task-operator"]
CMD ["run"]
