# The image of the service: one static binary, no shell, not root.
#
#   make image IMAGE=registry.example.com/quotasvc:1.2.3 VERSION=v1.2.3
#   make image-release IMAGE=...        amd64 and arm64, with SBOM and provenance
#
# `make pin-images` adds to each base image the digest that its registry has now, here and in the compose files. A
# release is built with digests. The binary depends on the version of Go alone: make verify-reproducible. Other images
# may take their place: --build-arg BUILD_IMAGE=... and BASE_IMAGE=...
ARG BUILD_IMAGE=golang:1.27-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

# The compiler runs on the builder's own kind of processor, for any other.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
WORKDIR /src
# Copy the module files first: they change less often than the code.
COPY go.mod go.sum ./
COPY client/go.mod client/
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
ARG COMMIT=
ARG TARGETOS=linux
ARG TARGETARCH=amd64
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X main.version=${VERSION} -X main.commit=${COMMIT}" -o /out/quotasvc ./cmd/quotasvc

# The base image has certificates and time zones; the binary contains time zones as well.
FROM ${BASE_IMAGE} AS quotasvc
ARG VERSION=
ARG COMMIT=
LABEL org.opencontainers.image.title="quotasvc" \
      org.opencontainers.image.description="Quotas, prepaid credits and rate limits for product backends" \
      org.opencontainers.image.source="https://github.com/quotasvc/quotasvc" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
COPY --from=build /out/quotasvc /quotasvc
# A number, so that Kubernetes can check runAsNonRoot without reading the image.
USER 65532:65532
# In a container, the loopback address cannot be reached from outside.
ENV QUOTASVC_LISTEN=:8080 QUOTASVC_OPS_LISTEN=:9090
EXPOSE 8080 9090
ENTRYPOINT ["/quotasvc"]
CMD ["serve"]
