# The image of the service: one static binary, no shell, not root. Build it with
#   docker build --build-arg VERSION=1.2.3 -t quotasvc .

FROM golang:1.26-bookworm AS build
WORKDIR /src
# Copy the module files first: they change less often than the code.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/quotasvc ./cmd/quotasvc

# The base image has certificates and time zones; the binary contains time zones as well.
FROM gcr.io/distroless/static-debian12:nonroot AS quotasvc
COPY --from=build /out/quotasvc /quotasvc
# A number, so that Kubernetes can check runAsNonRoot without reading the image.
USER 65532:65532
# In a container, the loopback address cannot be reached from outside.
ENV QUOTASVC_LISTEN=:8080 QUOTASVC_OPS_LISTEN=:9090
EXPOSE 8080 9090
ENTRYPOINT ["/quotasvc"]
CMD ["serve"]
