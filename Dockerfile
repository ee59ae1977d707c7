# The command in a container:
#   docker build -t tfconvert .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/models" tfconvert saved_model -o model.tflite
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY pyproject.toml LICENSE ./
COPY docs/pypi.md docs/
COPY tfconvert/ tfconvert/
RUN python -m venv /opt/tfconvert \
    && /opt/tfconvert/bin/python -m pip install --no-cache-dir '.[verify]'

# The same base: a venv refers to the Python that made it.
FROM python:${PYTHON}-slim
COPY --from=build /opt/tfconvert /opt/tfconvert
ENV PATH=/opt/tfconvert/bin:$PATH
RUN useradd --system --no-create-home tfconvert
USER tfconvert
WORKDIR /models
ENTRYPOINT ["tfconvert"]
CMD ["--help"]
