# Builds two images, one for the command and one for the service:
#   docker build -t tfconvert .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/models" tfconvert saved_model -o model.tflite
#   docker build -t tfconvert-service --target service .
#   docker run --rm --publish 8750:8750 --volume tfconvert:/data tfconvert-service
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS source
WORKDIR /source
COPY pyproject.toml LICENSE ./
COPY docs/pypi.md docs/
COPY tfconvert/ tfconvert/
RUN python -m venv /opt/tfconvert

FROM source AS build
RUN /opt/tfconvert/bin/python -m pip install --no-cache-dir '.[verify]'

FROM source AS build-service
RUN /opt/tfconvert/bin/python -m pip install --no-cache-dir '.[postgresql,verify]'

# Use the same base image: a venv refers to the Python that created it.
FROM python:${PYTHON}-slim AS service
COPY --from=build-service /opt/tfconvert /opt/tfconvert
ENV PATH=/opt/tfconvert/bin:$PATH TFCONVERT_SERVICE_DATA=/data TFCONVERT_SERVICE_HOST=0.0.0.0
# A numeric user ID lets Kubernetes check that it is not root.
RUN useradd --system --no-create-home --uid 10001 tfconvert && install --directory --owner=10001 --mode=0700 /data
USER 10001
VOLUME /data
EXPOSE 8750
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8750/healthz', timeout=4)"]
ENTRYPOINT ["tfconvert", "serve"]
# The first token is written to this file.
CMD ["--admin-token", "/data/admin.token"]

FROM python:${PYTHON}-slim
COPY --from=build /opt/tfconvert /opt/tfconvert
ENV PATH=/opt/tfconvert/bin:$PATH
RUN useradd --system --no-create-home tfconvert
USER tfconvert
WORKDIR /models
ENTRYPOINT ["tfconvert"]
CMD ["--help"]
