# syntax=docker/dockerfile:1
# The command line:  docker build --target cli --tag riata .
#                    docker run --rm --volume "$PWD:/data" riata fit study.toml
# The collector:     docker build --target collector --tag riata-collector .
#                    docker run --publish 8080:8080 --volume survey:/data riata-collector
# The collector serves /data/task.toml and keeps reports in /data/reports.

FROM python:3.13-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/riata
ENV PATH=/opt/riata/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
# Dependencies first: they change less often than the source.
COPY requirements/ci.txt requirements/
COPY pyproject.toml README.md LICENSE ./
COPY src/riata/__init__.py src/riata/
RUN pip install --constraint requirements/ci.txt ".[fast,files,report,collect,postgres]"
COPY src src
RUN pip install --no-deps --force-reinstall .

FROM python:3.13-slim-bookworm AS cli
RUN useradd --create-home --uid 10001 riata \
    && install --directory --owner=riata --group=riata --mode=0700 /data
COPY --from=build /opt/riata /opt/riata
ENV PATH=/opt/riata/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /data
VOLUME /data
ENTRYPOINT ["riata"]
CMD ["--help"]

FROM cli AS collector
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/ready', timeout=4)"]
CMD ["collect", "serve", "task.toml", "--host", "0.0.0.0", "--port", "8080", "--store", "reports"]
