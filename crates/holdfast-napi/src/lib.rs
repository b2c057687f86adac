//! The Node binding: conversion only. Every decision lives in `holdfast-core`.
