# The command line in a container:
#   docker build --tag skn .
#   docker run --rm --volume "$PWD:/data" skn train clicks.vw --model clicks.skn
# `skn serve` in it: docs/serving.md.
# `release/dockerfile.py` runs these steps without a container engine, for the tests.

FROM python:3.12-slim-bookworm AS builder
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++=4:12.2.0-3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY native native
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim-bookworm
COPY --from=builder /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[arrow,serve]" \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 skn
USER 1000
WORKDIR /data
ENTRYPOINT ["skn"]
CMD ["--help"]
