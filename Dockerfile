# optdp for one who verifies artifacts or draws from them: `optdp verify`, `optdp sample`, and samplers in Python or C.
#
#   docker build --tag optdp .
#   docker run --rm --network none --volume "$PWD:/data:ro" optdp verify release.json
#   docker run --rm --network none --volume "$PWD:/data:ro" --entrypoint python optdp sampler/sampler.py --self-test

FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY optdp optdp
COPY problems problems
RUN python -m venv /opt/optdp && /opt/optdp/bin/pip install --no-cache-dir --disable-pip-version-check . \
 && /opt/optdp/bin/pip uninstall --yes --quiet pip

FROM python:3.12-slim
COPY --from=build /opt/optdp /opt/optdp
ENV PATH="/opt/optdp/bin:$PATH" OPTDP_QUIET=1
RUN useradd --create-home --uid 10001 optdp
USER optdp
WORKDIR /data
RUN optdp --version && cd /tmp && optdp solve sick-leave --out a.json && optdp verify a.json --recheck \
 && optdp export a.json --to python --out sampler && python sampler/sampler.py --self-test \
 && rm -r a.json sampler
ENTRYPOINT ["optdp"]
CMD ["--help"]
