# docker build -t robustmd . && docker run --rm -v "$PWD/outputs:/work/outputs" robustmd train method=opt
# On the CPU. PyTorch's builds for the CPU alone are smaller: --build-arg TORCH_INDEX=THEIR_INDEX
FROM python:3.12-slim
ARG TORCH_INDEX=
COPY pyproject.toml README.md LICENSE /source/
COPY robustmd /source/robustmd
COPY conf /source/conf
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch torchvision \
 && pip install --no-cache-dir /source && rm -r /source
RUN useradd --create-home user && install -d -o user /work
USER user
WORKDIR /work
ENTRYPOINT ["robustmd"]
CMD ["--help"]
